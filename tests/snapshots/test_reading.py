"""A snapshot is read as it was written; what is damaged is said once and the rest goes on."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
from pathlib import Path

import orjson
import pytest

from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.sources import open_captured_cluster
from tests.snapshots.worlds import CRD, NAMESPACE, widget, write_snapshot

NAME = "widgets.example.com"
WIDGETS = [widget(f"w{number}", size=number) for number in range(50)]


def test_a_written_snapshot_is_read_back(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS)

    with open_captured_cluster(str(path)) as world:
        crds, objects, others = (
            list(world.crds()),
            list(world.objects(NAME)),
            list(world.other_objects()),
        )

    assert [crd["metadata"]["name"] for crd in crds] == [NAME]
    assert objects == WIDGETS
    assert others == [NAMESPACE]
    assert world.problems == []
    assert world.counts().objects == {NAME: 50}
    assert world.origin == "test:"


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS)

    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["s.tar.gz"]


def test_tar_reads_it_and_what_tar_unpacked_is_read(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS)
    folder = tmp_path / "unpacked"
    folder.mkdir()

    subprocess.run(["tar", "xzf", path, "-C", folder], check=True)

    lines = (folder / "objects" / f"{NAME}.ndjson").read_bytes().splitlines()
    assert [orjson.loads(line) for line in lines] == WIDGETS
    with open_captured_cluster(str(folder)) as world:
        assert list(world.objects(NAME)) == WIDGETS
        assert world.problems == []


def test_a_snapshot_packed_anew_by_tar_is_read(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS)
    folder = tmp_path / "unpacked"
    folder.mkdir()
    subprocess.run(["tar", "xzf", path, "-C", folder], check=True)

    subprocess.run(["tar", "czf", tmp_path / "again.tgz", "-C", tmp_path, "unpacked"], check=True)

    with open_captured_cluster(str(tmp_path / "again.tgz")) as world:
        assert list(world.objects(NAME)) == WIDGETS
        assert world.problems == []


def test_a_truncated_file_gives_its_complete_parts_and_counts_the_missing(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])

    with open_captured_cluster(str(path)) as world:
        found = list(world.objects(NAME))
        counts = world.counts()

    assert 0 < len(found) < 50
    assert found == WIDGETS[: len(found)]
    assert counts.objects[NAME] == len(found)
    assert counts.unjudged == 50 - len(found)
    assert any("is not whole" in problem for problem in world.problems)
    assert len(world.problems) == len(set(world.problems))


@pytest.mark.parametrize("kept", [0, 1, 10, 30, 100])
def test_a_file_of_which_hardly_anything_is_left_is_refused_in_one_line(
    tmp_path: Path, kept: int
) -> None:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS)
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(SnapshotError) as caught:
        open_captured_cluster(str(path))

    assert "\n" not in str(caught.value)


def test_another_version_of_the_format_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS, version=2)

    with open_captured_cluster(str(path)) as world:
        assert len(list(world.objects(NAME))) == 50
        assert [problem for problem in world.problems if "version 2 of the format" in problem]


def test_bytes_changed_afterwards_are_reported(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS)
    plain = bytearray(gzip.decompress(path.read_bytes()))
    at = plain.index(b'"size":7')
    plain[at : at + 8] = b'"size":8'

    (tmp_path / "changed.tar").write_bytes(plain)

    with open_captured_cluster(str(tmp_path / "changed.tar")) as world:
        assert [problem for problem in world.problems if "changed after" in problem]
        assert len(list(world.objects(NAME))) == 50


def test_lines_that_are_not_objects_are_omitted_and_counted(tmp_path: Path) -> None:
    folder = _unpacked(tmp_path)
    part = folder / "objects" / f"{NAME}.ndjson"
    part.write_bytes(b"not json\n" + part.read_bytes() + b"[1]\n")

    with open_captured_cluster(str(folder)) as world:
        assert list(world.objects(NAME)) == WIDGETS
        assert world.counts().unjudged == 2
        assert [problem for problem in world.problems if "2 of its lines" in problem]


def test_an_unreadable_crd_is_reported_and_others_are_read(tmp_path: Path) -> None:
    bad = {**CRD, "metadata": {"name": "bad.example.com"}, "spec": {"versions": 7}}
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS, crds=[bad, CRD, CRD])

    with open_captured_cluster(str(path)) as world:
        names = [crd["metadata"]["name"] for crd in world.crds()]
        again = [crd["metadata"]["name"] for crd in world.crds()]

    assert names == again == [NAME]
    assert len(world.problems) == 2


@pytest.mark.parametrize("name", ["/etc/passwd", "../outside.ndjson", "objects/../../x.ndjson"])
def test_names_that_try_to_leave_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "s.tar"
    plain = gzip.decompress(write_snapshot(tmp_path / "s.tar.gz", WIDGETS).read_bytes())
    path.write_bytes(plain)
    with tarfile.open(path, "a") as archive:
        info = tarfile.TarInfo(name)
        info.size = 3
        archive.addfile(info, io.BytesIO(b"{}\n"))

    with open_captured_cluster(str(path)) as world:
        assert [problem for problem in world.problems if repr(name) in problem]
        assert list(world.objects(NAME)) == WIDGETS


def test_links_are_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "s.tar"
    path.write_bytes(gzip.decompress(write_snapshot(tmp_path / "s.tar.gz", WIDGETS).read_bytes()))
    with tarfile.open(path, "a") as archive:
        info = tarfile.TarInfo("objects/link.ndjson")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)

    with open_captured_cluster(str(path)) as world:
        assert [problem for problem in world.problems if "objects/link.ndjson" in problem]


def test_an_archive_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS)
    header = tarfile.TarInfo("objects/bomb.ndjson")
    header.size = 10 << 30
    plain = gzip.decompress(path.read_bytes())[:-1024]  # without the end of the archive
    bomb = gzip.compress(header.tobuf(tarfile.GNU_FORMAT)) + gzip.compress(b"\0" * (1 << 20)) * 400
    path.write_bytes(gzip.compress(plain) + bomb)

    with pytest.raises(SnapshotError, match="times its size"):
        open_captured_cluster(str(path))


def test_a_header_that_is_itself_huge_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    path = tmp_path / "s.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + b"a" * 2048)

    with pytest.raises(SnapshotError, match="a header of"):
        open_captured_cluster(str(path))


def _unpacked(tmp_path: Path) -> Path:
    path = write_snapshot(tmp_path / "s.tar.gz", WIDGETS)
    folder = tmp_path / "unpacked"
    folder.mkdir()
    subprocess.run(["tar", "xzf", path, "-C", folder], check=True)
    return folder
