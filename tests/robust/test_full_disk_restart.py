"""``instar serve`` on a disk that is full: killed there, started there, and started with space."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replicas.processes import Replica, prepare_pki
from tests.support.small_disk import small_disk

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, "6m"):
        (folder / "filler").write_bytes(b"x" * 2_000_000)
        yield folder


@pytest.fixture
def server(tmp_path: Path, disk: Path) -> Iterator[Replica]:
    prepare_pki(tmp_path)
    process = Replica(tmp_path, "full", f"sqlite:{disk / 's.db'}", ("--furniture", "off"))
    try:
        yield process
    finally:
        process.kill()


def _write(server: Replica, number: int) -> int:
    body = {"metadata": {"name": f"c{number}"}, "data": {"x": "x" * 50_000}}
    return server.request("POST", CONFIG_MAPS, body).status


def _fill(server: Replica) -> set[str]:
    """Write until several writes in a row are refused; the names of those that were not."""
    acknowledged: set[str] = set()
    refused = 0
    for number in range(1000):
        if _write(server, number) == http.client.CREATED:
            acknowledged.add(f"c{number}")
            refused = 0
        elif (refused := refused + 1) == 3:
            return acknowledged
    raise AssertionError("the disk was never full")


def _names(server: Replica) -> set[str]:
    answer = server.request("GET", CONFIG_MAPS)
    assert answer.status == 200, answer.text
    items = answer.json["items"]
    assert all(len(item["data"]["x"]) == 50_000 for item in items)
    return {item["metadata"]["name"] for item in items}


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_server_that_ends_on_a_full_disk_has_every_acknowledged_object_afterwards(
    server: Replica, disk: Path, end: str
) -> None:
    server.start()
    server.until_ready()
    acknowledged = _fill(server)
    server.kill() if end == "kill" else server.stop()
    os.unlink(disk / "filler")

    server.start()
    server.until_ready()

    assert acknowledged
    assert acknowledged <= _names(server)
    assert _write(server, 5000) == http.client.CREATED


def test_a_full_disk_refuses_a_start_in_one_line_and_takes_nothing(
    server: Replica, disk: Path
) -> None:
    server.start()
    server.until_ready()
    acknowledged = _fill(server)
    server.kill()
    told = len(server.log.read_text())

    server.start()
    assert server.process is not None
    code = server.process.wait(30)

    (line,) = server.log.read_text()[told:].splitlines()
    assert code == 2
    assert "the disk is full" in line
    os.unlink(disk / "filler")
    server.start()
    server.until_ready()
    assert acknowledged <= _names(server)
