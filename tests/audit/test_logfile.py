"""The log's file: rotation by size, number and age; disks that are full; several writers."""

from __future__ import annotations

import gzip
import os
import stat
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest

from instar.server.audit.logfile import LogFile, Rotation, Unwritten

LINE = b"x" * (300 << 10) + b"\n"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, 15, 4, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_is_full_is_moved_aside_with_the_time_in_its_name(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "audit.log", Rotation(megabytes=1), Clock())

    log.write([LINE] * 4)
    log.write([LINE])

    assert names(tmp_path) == [
        "audit-2026-11-15T15-04-05.000.log",
        "audit.log",
    ]
    assert (tmp_path / "audit-2026-11-15T15-04-05.000.log").stat().st_size == 3 * len(LINE)
    assert (tmp_path / "audit.log").stat().st_size == 2 * len(LINE)
    assert stat.S_IMODE((tmp_path / "audit.log").stat().st_mode) == 0o600


def test_without_a_maximum_size_files_are_not_rotated(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "audit.log", Rotation(megabytes=0), Clock())

    log.write([LINE] * 10)

    assert names(tmp_path) == ["audit.log"]


def test_a_line_larger_than_a_file_may_be_is_alone_in_one(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "audit.log", Rotation(megabytes=1), Clock())

    log.write([LINE, b"y" * (2 << 20) + b"\n", LINE])

    sizes = sorted(path.stat().st_size for path in tmp_path.iterdir())
    assert sizes == [len(LINE), len(LINE), (2 << 20) + 1]


def test_old_files_go_by_number_and_by_age(tmp_path: Path) -> None:
    clock = Clock()
    log = LogFile(tmp_path / "audit.log", Rotation(megabytes=1, backups=2, days=5), clock)
    (tmp_path / "audit-notes.log").write_text("not ours")

    for _ in range(5):
        log.write([LINE] * 3)
        clock.now += timedelta(days=1)
    kept = names(tmp_path)
    clock.now += timedelta(days=10)
    log.write([LINE] * 3)

    assert kept == [
        "audit-2026-11-18T15-04-05.000.log",
        "audit-2026-11-19T15-04-05.000.log",
        "audit-notes.log",
        "audit.log",
    ]
    assert len(names(tmp_path)) == 3


def test_rotated_files_are_compressed_when_configured(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "audit.log", Rotation(megabytes=1, compress=True), Clock())

    log.write([LINE] * 4)

    packed = tmp_path / "audit-2026-11-15T15-04-05.000.log.gz"
    assert names(tmp_path) == [packed.name, "audit.log"]
    assert gzip.decompress(packed.read_bytes()) == LINE * 3


def test_a_folder_is_made_and_an_existing_file_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "audit.log"
    LogFile(path, Rotation(), Clock()).write([b"one\n"])
    LogFile(path, Rotation(), Clock()).write([b"two\n"])

    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_log_file_that_was_moved_away_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = LogFile(path, Rotation(), Clock())
    log.write([b"one\n"])
    path.rename(tmp_path / "taken.log")

    log.write([b"two\n"])

    assert path.read_bytes() == b"two\n"


def test_a_full_disk_leaves_no_half_line_and_says_how_much_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.log"
    log = LogFile(path, Rotation(), Clock())
    log.write([b"one\n"])
    write, calls = os.write, []

    def nearly_full(file: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write(file, data[:2])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", nearly_full)
        with pytest.raises(Unwritten, match="No space left on device") as lost:
            log.write([b"two\n", b"three\n"])
    log.write([b"four\n"])

    assert lost.value.lines == 2
    assert path.read_bytes() == b"one\nfour\n"


def test_a_real_full_device_is_reported() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(Unwritten, match="No space left on device"):
        LogFile(Path("/dev/full"), Rotation()).write([b"x\n"])


def _write(path: Path, name: str) -> None:
    log = LogFile(path, Rotation(megabytes=1))
    for number in range(60):
        log.write([f"{name}-{number} ".encode() + b"x" * 40_000 + b"\n"])


def test_several_processes_lose_no_line_between_them(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    context = get_context("spawn")
    writers = [context.Process(target=_write, args=(path, f"w{n}")) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)

    lines = [line for file in tmp_path.iterdir() for line in file.read_bytes().splitlines()]
    found = {line.partition(b" ")[0].decode() for line in lines}
    assert len(lines) == 180
    assert found == {f"w{n}-{number}" for n in range(3) for number in range(60)}
    assert all(file.stat().st_size <= 1 << 20 for file in tmp_path.iterdir())
