"""``instar adopt --plan``: what is in the way is named, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from instar.tools.adopter.adopt import adopt
from instar.tools.adopter.api_services import PATH, routing_patch
from instar.tools.adopter.move import GroupMove, MoveOptions
from instar.tools.adopter.preflight import MovePlan, look
from tests.support.adoption import MERGE, V1, MovableCluster, movable_cluster, run_as_command
from tests.support.main_cluster import GROUP, crd
from tests.support.waiting import eventually
from tests.support.webhook import Webhook

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MovableCluster]:
    with movable_cluster(tmp_path) as found:
        yield found


def _plan(cluster: MovableCluster, *, back: bool = False, **options: Any) -> MovePlan:
    async def planned() -> MovePlan:
        async with cluster.client() as client:
            move = await cluster.move(client, lambda text: None)
            try:
                changed = replace(move, options=replace(MoveOptions(), **options))
                return await look(changed, back=back)
            finally:
                move.journal.close()

    return run_as_command(planned())


def _adopted(cluster: MovableCluster) -> None:
    async def moved() -> None:
        async with cluster.client() as client:
            move = await cluster.move(client, lambda text: None)
            assert await adopt(move) == []
            move.journal.close()

    run_as_command(moved())


def _route(cluster: MovableCluster, version: str) -> None:
    """Route a version to instar by hand."""

    async def routed(move: GroupMove) -> None:
        await move.cluster.client.patch(f"{PATH}/{version}.{GROUP}", routing_patch(move.route))

    async def run() -> None:
        async with cluster.client() as client:
            move = await cluster.move(client, lambda text: None)
            await routed(move)
            move.journal.close()

    run_as_command(run())


def _scan(cluster: MovableCluster, name: str) -> None:
    path = f"/apis/{GROUP}/v1/namespaces/default/scans"
    made = {"apiVersion": f"{GROUP}/v1", "kind": "Scan", "metadata": {"name": name}}
    assert cluster.main.request("POST", path, made).status == 201


def _exists(cluster: MovableCluster, path: str) -> bool:
    return cluster.main.request("GET", path).status == 200


def _two_versions_by_webhook(hook: Webhook) -> dict[str, Any]:
    made = crd("scans", "Scan")
    (first,) = made["spec"]["versions"]
    made["spec"]["versions"] = [first, {**first, "name": "v1beta1", "storage": False}]
    made["spec"]["conversion"] = hook.conversion()
    return made


def test_a_dead_conversion_webhook_is_in_the_way(cluster: MovableCluster) -> None:
    with Webhook() as hook:
        cluster.main.create_crd(_two_versions_by_webhook(hook))
        _scan(cluster, "two")
        alive = _plan(cluster)
    _scan(cluster, "one")  # conversions of the other are known
    dead = _plan(cluster)

    assert alive.obstacles == []
    (obstacle,) = dead.obstacles
    assert obstacle.startswith(f"scans.{GROUP} cannot be read at v1beta1: ")
    assert dead.objects[f"reports.{GROUP}"] == 3  # the others are counted all the same


def test_a_dead_validating_webhook_is_a_note_with_the_wait_that_it_costs(
    cluster: MovableCluster,
) -> None:
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["*"],
    }
    hook = {
        "name": "dead.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 3,
    }
    body = {"metadata": {"name": "dead"}, "webhooks": [hook]}
    assert cluster.main.request("POST", _HOOKS, body).status == 201

    plan = _plan(cluster)

    assert plan.ok
    assert any("a write without a change fails" in each for each in plan.warnings)
    assert any("waits 3 s" in each and "dead.example.com" in each for each in plan.warnings)
    assert plan.freeze_seconds > 3


def test_routes_to_both_servers_are_in_the_way(cluster: MovableCluster) -> None:
    eventually(lambda: cluster.main.request("GET", f"{PATH}/v2.{GROUP}").status == 200)
    _route(cluster, "v2")

    plan = _plan(cluster)

    assert any("some versions are served by instar" in each for each in plan.obstacles)
    assert plan.routes == {"v1": "the main cluster", "v2": "instar"}


def test_a_crd_that_no_version_serves_is_in_the_way(cluster: MovableCluster) -> None:
    unserved = crd("scans", "Scan")
    unserved["spec"]["versions"][0]["served"] = False
    assert cluster.main.request("POST", _CRDS, unserved).status == 201

    plan = _plan(cluster)

    assert any(f"scans.{GROUP} serves no version" in each for each in plan.obstacles)


def test_a_server_that_did_not_adopt_the_group_gives_nothing_back(
    cluster: MovableCluster,
) -> None:
    """Its store may be another one than before: a return would remove every object."""
    for version in ("v1", "v2"):
        path = f"{PATH}/{version}.{GROUP}"
        eventually(partial(_exists, cluster, path))
        _route(cluster, version)

    refused = _plan(cluster, back=True, accept_new_uids=True)
    wanted = _plan(cluster, back=True, accept_new_uids=True, discard=True)

    assert any("did not adopt" in each for each in refused.obstacles)
    assert wanted.ok


def test_a_plan_back_counts_what_changed(cluster: MovableCluster) -> None:
    _adopted(cluster)
    cluster.main.request("PATCH", f"{V1}/a", {"spec": {"size": 9}}, content_type=MERGE)
    cluster.main.request("DELETE", f"{V1}/b")

    plan = _plan(cluster, back=True)

    assert plan.ok
    assert plan.since == {"created": {}, "changed": {"reports": 1}, "deleted": 1}
