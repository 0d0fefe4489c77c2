"""A group with several CRDs moves as a whole: several versions, another scope, a webhook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from instar.base.json_values import Object
from instar.tools.adopter.adopt import adopt
from instar.tools.adopter.move import MoveOptions
from instar.tools.adopter.return_group import give_back
from tests.support.adoption import (
    MERGE,
    V1,
    V2,
    MovableCluster,
    movable_cluster,
    run_as_command,
)
from tests.support.main_cluster import GROUP, crd
from tests.support.webhook import Webhook

_SCANS = {version: f"/apis/{GROUP}/{version}/scans" for version in ("v1", "v1beta1")}


def _scans(hook: Webhook) -> Object:
    """Cluster-scoped, stored at v1, and at v1beta1 with another name for the field."""
    made = crd("scans", "Scan")
    made["spec"]["scope"] = "Cluster"
    (first,) = made["spec"]["versions"]
    spec = {"type": "object", "properties": {"length": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    beta = {**first, "name": "v1beta1", "storage": False, "schema": {"openAPIV3Schema": schema}}
    made["spec"]["versions"] = [first, beta]
    made["spec"]["conversion"] = hook.conversion()
    return made


def _renamed(obj: Object, api_version: str) -> Object:
    old, new = ("size", "length") if api_version.endswith("beta1") else ("length", "size")
    spec = {new if name == old else name: value for name, value in obj["spec"].items()}
    return {**obj, "apiVersion": api_version, "spec": spec}


def _moved(cluster: MovableCluster, *, back: bool) -> Any:
    async def moved() -> Any:
        async with cluster.client() as client:
            options = MoveOptions(in_flight=0.05, margin=20, accept_new_uids=True)
            move = await cluster.move(client, lambda text: None, options)
            try:
                return await (give_back(move, None) if back else adopt(move))
            finally:
                move.journal.close()

    return run_as_command(moved())


def _shown(cluster: MovableCluster) -> list[dict[str, Any]]:
    return [cluster.objects(path) for path in (V1, V2, *_SCANS.values())]


def test_all_crds_and_versions_go_and_come_back_together(tmp_path: Path) -> None:
    with Webhook(convert=_renamed) as hook, movable_cluster(tmp_path) as cluster:
        cluster.main.create_crd(_scans(hook))
        for name in ("one", "two"):
            obj = {"apiVersion": f"{GROUP}/v1", "kind": "Scan", "metadata": {"name": name}}
            body = {**obj, "spec": {"size": 3}}
            assert cluster.main.request("POST", _SCANS["v1"], body).status == 201
        before = _shown(cluster)

        forth = _moved(cluster, back=False)
        there = _shown(cluster)
        served = [
            any(name.lower() == "x-served-by" for name, _ in answer.headers)
            for answer in (
                cluster.main.request("GET", f"/apis/{GROUP}/{version}")
                for version in ("v1", "v2", "v1beta1")
            )
        ]
        longer = {"spec": {"length": 8}}
        patched = cluster.main.request(
            "PATCH", f"{_SCANS['v1beta1']}/one", longer, content_type=MERGE
        )
        changed = cluster.objects(_SCANS["v1"])
        back = _moved(cluster, back=True)
        after = cluster.objects(_SCANS["v1"])

    assert (forth, back) == ([], [])
    assert there == before
    assert before[3]["one"]["spec"] == {"length": 3}
    assert served == [True, True, True]
    assert patched.status == 200, patched.text
    assert {name: obj["spec"]["size"] for name, obj in changed.items()} == {"one": 8, "two": 3}
    assert {name: obj["spec"] for name, obj in after.items()} == {
        name: obj["spec"] for name, obj in changed.items()
    }
    assert after["one"]["metadata"]["uid"] == changed["one"]["metadata"]["uid"]
