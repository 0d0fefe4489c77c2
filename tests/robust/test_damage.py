"""A value damaged in the file is told by whoever reads it; everything else goes on.

A list that left it out would look like a deletion to whoever compares, so it fails as a whole and
names the object, as upstream's does; it can be deleted like one that cannot be decrypted.
"""

from __future__ import annotations

from pathlib import Path

from instar.cli.main import main
from tests.robust.conftest import THINGS
from tests.robust.stored_files import damaged, prepared
from tests.robust.victim import Victim

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


def test_a_cut_shm_file_hurts_nobody(tmp_path: Path) -> None:
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
