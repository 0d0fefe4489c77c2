"""kill -9 after the write with which the server dropped the field owners, and before the write that
gives them back: the next run has them from the files of the first, of ``migrate`` and ``upgrade``.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from instar.base.json_values import Object
from instar.tools.migrator.ownership import lost
from tests.migrator.running import command, instar
from tests.migrator.support import crd, fill, group_of, name_of, objects_path, stale_crd
from tests.migrator.upstream import Upstream, upstream
from tests.support.server import LiveServer

STRUCK = "w00002"


@pytest.fixture
def cluster(server: LiveServer, tmp_path: Path) -> Iterator[Upstream]:
    with upstream(server, tmp_path) as proxy:
        yield proxy


def _prepared(cluster: Upstream, folder: Path, tool: str) -> tuple[Object, list[str]]:
    """Objects that the tool will rewrite, and the words of its command."""
    if tool == "migrate":
        definition = stale_crd(cluster, 6)
        return definition, ["migrate", name_of(definition), "--settle", "0"]
    definition = crd()
    (old,) = [v for v in definition["spec"]["versions"] if v["name"] == "v1beta1"]
    installed = json.loads(json.dumps(definition))
    installed["spec"]["versions"] = [old]
    cluster.create_crd(installed)
    fill(cluster, definition, 6)
    release = json.loads(json.dumps(definition))
    for version in release["spec"]["versions"]:
        version["storage"] = version["name"] == "v1"
    file = folder / "release.yaml"
    file.write_text(yaml.safe_dump(release))
    return definition, ["upgrade", str(file), "--settle", "0", "--fail-on", "none"]


def _owners(cluster: Upstream, definition: Object, name: str) -> list[Object]:
    obj = cluster.request("GET", objects_path(definition, "v1beta1", name)).json
    found: list[Object] = obj["metadata"].get("managedFields") or []
    return found


def _killed(cluster: Upstream, words: list[str]) -> None:
    """Run until the server has dropped the owners of one object."""
    run = subprocess.Popen(
        command(cluster, *words, "--concurrency", "1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def strikes(method: str, path: str, answered: bool) -> bool:
        if answered and path.endswith(STRUCK):
            run.send_signal(signal.SIGKILL)
            return True
        return False

    cluster.wipes = lambda obj: obj["metadata"]["name"] == STRUCK
    cluster.passing = strikes
    assert run.wait() == -signal.SIGKILL
    cluster.wipes, cluster.passing = lambda obj: False, lambda method, path, answered: False


@pytest.mark.parametrize("other_client", [False, True])
@pytest.mark.parametrize("tool", ["migrate", "upgrade"])
def test_the_next_run_gives_back_owners_that_only_the_killed_one_had_read(
    cluster: Upstream, tmp_path: Path, tool: str, *, other_client: bool
) -> None:
    definition, words = _prepared(cluster, tmp_path, tool)
    before = {f"w{n:05d}": _owners(cluster, definition, f"w{n:05d}") for n in range(6)}
    _killed(cluster, words)
    assert lost(before[STRUCK], _owners(cluster, definition, STRUCK))
    if other_client:
        path = objects_path(definition, "v1beta1", STRUCK) + "?fieldManager=another"
        patch: Object = {"apiVersion": f"{group_of(definition)}/v1beta1", "kind": "Widget"}
        patch |= {"metadata": {"name": STRUCK, "labels": {"seen": "yes"}}}
        kind = "application/apply-patch+yaml"
        assert cluster.request("PATCH", path, patch, content_type=kind).status == 200

    again = instar(cluster, *words)

    assert again.returncode == 0, again.stdout
    for name, owners in before.items():
        assert lost(owners, _owners(cluster, definition, name)) == []
    managers = {entry["manager"] for entry in _owners(cluster, definition, STRUCK)}
    wanted = {str(entry["manager"]) for entry in before[STRUCK]}
    assert managers == (wanted | {"another"} if other_client else wanted)
