"""Every form people have a cluster in is read as the same world."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.tools.snapshots.dumps import objects_in
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.sources import open_captured_cluster
from tests.snapshots.worlds import CRD, NAMESPACE, widget

NAME = "widgets.example.com"
WIDGETS = [widget(f"w{number}", size=number) for number in range(3)]
EVERYTHING = [CRD, NAMESPACE, *WIDGETS]
LARGE = [CRD, NAMESPACE, *(widget(f"w{number}", text="x" * 300) for number in range(20))]


def folder_of_yaml(path: Path) -> Path:
    (path / "below").mkdir(parents=True)
    (path / "crd.yaml").write_text(yaml.safe_dump(CRD))
    (path / "below" / "all.yml").write_text(yaml.safe_dump_all([NAMESPACE, *WIDGETS]))
    (path / "README.md").write_text("# no manifest\n")
    return path


def kubectl_yaml(path: Path) -> Path:
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "items": EVERYTHING, "kind": "List"}))
    return path


def kubectl_json(path: Path) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "items": EVERYTHING, "kind": "List"}, indent=4))
    return path


def kubectl_json_packed(path: Path) -> Path:
    text = json.dumps({"apiVersion": "v1", "items": EVERYTHING, "kind": "List"})
    path.write_bytes(gzip.compress(text.encode()))
    return path


def lines_of_json(path: Path) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in EVERYTHING))
    return path


def backup_tree(path: Path) -> Path:
    """As velero writes one: each object once, and again below the version it prefers."""
    crds = path / "resources" / "customresourcedefinitions.apiextensions.k8s.io"
    mine = path / "resources" / NAME
    _write(crds / "cluster" / f"{NAME}.json", CRD)
    _write(crds / "v1-preferredversion" / "cluster" / f"{NAME}.json", CRD)
    _write(path / "resources" / "namespaces" / "cluster" / "ns.json", NAMESPACE)
    for each in WIDGETS:
        name = each["metadata"]["name"]
        _write(mine / "namespaces" / "ns" / f"{name}.json", each)
        _write(mine / "v1-preferredversion" / "namespaces" / "ns" / f"{name}.json", each)
        other = {**each, "apiVersion": "example.com/v1beta1"}
        _write(mine / "v1beta1" / "namespaces" / "ns" / f"{name}.json", other)
    (path / "metadata").mkdir()
    (path / "metadata" / "version").write_text("1.1.0\n")
    return path


def backup_archive(path: Path) -> Path:
    tree = backup_tree(path.with_suffix(".tree"))
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tree, arcname=".")
    return path


def must_gather(path: Path) -> Path:
    """Members of its lists do not say what they are."""
    image = path / "quay-io-image-sha256-1"
    crds = "cluster-scoped-resources/apiextensions.k8s.io/customresourcedefinitions"
    _write(image / crds / f"{NAME}.yaml", CRD)
    bare = {name: value for name, value in NAMESPACE.items() if name == "metadata"}
    listed = {"apiVersion": "v1", "kind": "NamespaceList", "items": [bare]}
    _write(image / "cluster-scoped-resources" / "core" / "namespaces.yaml", listed)
    for each in WIDGETS:
        name = f"{each['metadata']['name']}.yaml"
        _write(image / "namespaces" / "ns" / "example.com" / "widgets" / name, each)
    (image / "timestamp").write_text("2026\n")
    return path


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value) if path.suffix == ".json" else yaml.safe_dump(value))


FORMS = [
    folder_of_yaml,
    kubectl_yaml,
    kubectl_json,
    kubectl_json_packed,
    lines_of_json,
    backup_tree,
    backup_archive,
    must_gather,
]


@pytest.mark.parametrize("made", FORMS)
def test_it_is_the_same_world(tmp_path: Path, made: Callable[[Path], Path]) -> None:
    path = made(tmp_path / "given")

    with open_captured_cluster(str(path)) as world:
        names = [crd["metadata"]["name"] for crd in world.crds()]
        objects, others = list(world.objects(NAME)), list(world.other_objects())

    assert names == [NAME]
    assert sorted(objects, key=lambda obj: str(obj["metadata"]["name"])) == WIDGETS
    assert others == [NAMESPACE]
    assert world.problems == []


def _as_yaml(objects: list[Any]) -> str:
    return str(yaml.safe_dump({"apiVersion": "v1", "items": objects, "kind": "List"}))


def _as_documents(objects: list[Any]) -> str:
    return str(yaml.safe_dump_all(objects, explicit_start=True))


def _as_json(objects: list[Any]) -> str:
    return json.dumps({"apiVersion": "v1", "items": objects, "kind": "List"}, indent=4)


def _as_lines(objects: list[Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


@pytest.mark.parametrize("written", [_as_yaml, _as_documents, _as_json, _as_lines])
def test_a_dump_too_large_for_one_document_is_read_member_by_member(
    written: Callable[[list[Any]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = written(LARGE)
    monkeypatch.setattr("instar.tools.snapshots.dumps.MAX_LINE", 4000)

    found = list(objects_in(io.BytesIO(text.encode()), "dump", pytest.fail))

    assert len(text) > 4000
    assert found == LARGE


@pytest.mark.parametrize("written", [_as_yaml, _as_documents, _as_json])
def test_a_member_that_is_too_large_is_omitted_and_reported(
    written: Callable[[list[Any]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = widget("huge", lines=["x" * 50] * 200)
    text = written([*LARGE[:5], huge, *LARGE[5:]])
    monkeypatch.setattr("instar.tools.snapshots.dumps.MAX_LINE", 4000)
    said: list[str] = []

    found = list(objects_in(io.BytesIO(text.encode()), "dump", said.append))

    assert found == LARGE
    assert len(said) == 1


def test_a_list_on_one_line_that_is_too_large_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "all.json"
    path.write_text('{"items": [\n' + ",".join(json.dumps(each) for each in EVERYTHING) + "]}\n")
    monkeypatch.setattr("instar.tools.snapshots.dumps.MAX_LINE", 400)
    said: list[str] = []

    with path.open("rb") as stream:
        assert list(objects_in(stream, "all", said.append)) == []

    assert [text for text in said if "jq -c" in text]


def test_objects_of_unknown_crds_are_counted_as_unknown(tmp_path: Path) -> None:
    gadget = {**widget("g"), "kind": "Gadget"}
    _write(tmp_path / "all.yaml", {"kind": "List", "items": [CRD, gadget, gadget, WIDGETS[0]]})

    with open_captured_cluster(str(tmp_path)) as world:
        counts = world.counts()

    assert counts.unknown == {"Gadget.example.com": 2}
    assert (counts.total, counts.unjudged) == (1, 2)
    assert [problem for problem in world.problems if "Gadget.example.com" in problem]


def test_a_bad_file_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    folder_of_yaml(tmp_path / "given")
    (tmp_path / "given" / "bad.yaml").write_text("a: [1,\n")
    (tmp_path / "given" / "binary.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "given" / "foreign.json").write_text('{"name": "package"}')

    with open_captured_cluster(str(tmp_path / "given")) as world:
        assert list(world.objects(NAME)) == WIDGETS
        assert len(world.problems) == 3


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "[1]", "text"])
def test_a_source_without_objects_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.yaml").write_text(text)

    with pytest.raises(SnapshotError) as caught:
        open_captured_cluster(str(tmp_path / "x.yaml"))

    assert "\n" not in str(caught.value)


def test_a_missing_source_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="No such file"):
        open_captured_cluster(str(tmp_path / "nowhere"))


def test_a_commit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of_yaml(tmp_path / "given")
    monkeypatch.chdir(tmp_path)
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"],
    ):
        subprocess.run(["git", *command], check=True)

    with open_captured_cluster("git:HEAD:given") as world:
        assert list(world.objects(NAME)) == WIDGETS


def test_the_private_folder_goes_with_the_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder_of_yaml(tmp_path / "given")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))

    with open_captured_cluster(str(path)):
        (folder,) = (tmp_path / "tmp").iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700

    assert list((tmp_path / "tmp").iterdir()) == []
