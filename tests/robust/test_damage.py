"""A value damaged in the file is told by whoever reads it; everything else goes on.

A list that left it out would look like a deletion to whoever compares, so it fails as a whole and
names the object, as upstream's does; it can be deleted like one that cannot be decrypted.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from instar.cli.main import main
from tests.robust.conftest import THINGS
from tests.robust.stored_files import damaged, prepared
from tests.robust.victim import Victim
from tests.support.server import live_server
from tests.support.waiting import eventually

ANYWAY = "?ignoreStoreReadErrorWithClusterBreakingPotential=true"


def test_a_damaged_value_costs_itself_and_can_be_removed(tmp_path: Path) -> None:
    path = prepared(tmp_path, "a", "b", "c")
    damaged(path, "b")
    assert main(["storage", "verify", str(path)]) == 1

    victim = Victim(tmp_path, "--storage", f"sqlite:{path}")
    with victim.watched():
        listed = victim.request("GET", THINGS)
        read = victim.request("GET", f"{THINGS}/b")
        others = [victim.request("GET", f"{THINGS}/{name}").status for name in "ac"]
        page = victim.request("GET", f"{THINGS}?limit=1")
        removed = victim.request("DELETE", f"{THINGS}/b{ANYWAY}")
        after = victim.request("GET", THINGS)
    victim.stop()

    for answer in (listed, read):
        assert answer.status == 500
        assert answer.json["kind"] == "Status"
        assert "the stored value of default/b cannot be read" in answer.json["message"]
    assert others == [200, 200]
    assert page.status == 200
    assert removed.status == 200
    assert [item["metadata"]["name"] for item in after.json["items"]] == ["a", "c"]


def test_a_truncated_shm_file_loses_no_data(tmp_path: Path) -> None:
    path = prepared(tmp_path, "a")
    victim = Victim(tmp_path, "--storage", f"sqlite:{path}")
    leftover = tmp_path / "s.db-shm"
    with victim.watched():
        leftover.write_bytes(b"")
        answers = [victim.request("GET", THINGS).status for _ in range(3)]
        patch = {"spec": {"replicas": 2}}
        media = "application/merge-patch+json"
        answers += [victim.request("PATCH", f"{THINGS}/a", patch, content_type=media).status]
    victim.stop()
    assert answers == [200] * 4


@pytest.mark.parametrize("cut", ["file", "log"])
def test_a_file_that_is_cut_takes_no_more_writes_and_says_so(tmp_path: Path, cut: str) -> None:
    path = tmp_path / "s.db"
    maps = "/api/v1/namespaces/default/configmaps"
    with live_server(storage=f"sqlite:{path}") as server:
        for number in range(20):
            body = {"metadata": {"name": f"before-{number}"}, "data": {"a": "x" * 5000}}
            assert server.request("POST", maps, body).status == 201
        target = path if cut == "file" else path.with_name("s.db-wal")
        os.truncate(target, target.stat().st_size // 2)

        refused = [
            server.request("POST", maps, {"metadata": {"name": f"after-{number}"}})
            for number in range(5)
        ]

        assert {answer.status for answer in refused} == {503}
        assert "was cut short while in use" in refused[0].json["message"]
        eventually(lambda: server.request("GET", "/readyz").status == 500)
        shown = server.request("GET", maps).json["items"]
        assert len(shown) == 20 + ("kube-root-ca.crt" in str(shown))
