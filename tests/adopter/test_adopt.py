"""A group moves to instar and back: nothing changes, nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from instar.base.errors import ApiError
from instar.tools.adopter.adopt import adopt, undo
from instar.tools.adopter.api_services import PATH
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.freeze_policy import BINDINGS
from instar.tools.adopter.move import GroupMove, MoveOptions, Tell
from instar.tools.adopter.preflight import look
from instar.tools.adopter.return_group import give_back
from tests.support.adoption import (
    JSON_PATCH,
    MERGE,
    V1,
    V2,
    MovableCluster,
    Writers,
    movable_cluster,
    run_as_command,
)
from tests.support.main_cluster import GROUP, report
from tests.support.server import Answer
from tests.support.waiting import eventually

_BY_API = MoveOptions(in_flight=0.05, margin=20, accept_new_uids=True)
Work = Callable[[GroupMove], Awaitable[Any]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MovableCluster]:
    with movable_cluster(tmp_path) as found:
        yield found


def _quiet(text: str) -> None:
    return


def _run(cluster: MovableCluster, work: Work, tell: Tell = _quiet) -> Any:
    async def moved() -> Any:
        async with cluster.client() as client:
            move = await cluster.move(client, tell, _BY_API)
            try:
                return await work(move)
            finally:
                move.journal.close()

    return run_as_command(moved())


def _return(move: GroupMove) -> Awaitable[list[str]]:
    return give_back(move, None)


def _frozen(cluster: MovableCluster) -> bool:
    return cluster.main.request("POST", f"{V1}?dryRun=All", report("try")).status == 403


def test_every_object_is_as_it_was_at_every_version(cluster: MovableCluster) -> None:
    before = (cluster.objects(V1), cluster.objects(V2))

    wrong = _run(cluster, adopt)

    assert wrong == []
    assert (cluster.objects(V1), cluster.objects(V2)) == before
    assert cluster.stored_by_instar()
    assert "deletionTimestamp" in before[0]["held"]["metadata"]


def test_no_acknowledged_write_is_lost_and_every_read_is_answered(
    cluster: MovableCluster,
) -> None:
    with Writers(cluster) as writers:
        forth = _run(cluster, adopt)
        back = _run(cluster, _return)

    found = {name: obj["spec"]["size"] for name, obj in cluster.objects().items()}
    assert (forth, back) == ([], [])
    assert {name: found[name] for name in writers.sizes} == writers.sizes
    assert writers.refused <= {403}
    assert writers.unread == 0
    assert not cluster.stored_by_instar()


def test_a_revision_of_before_is_410_and_none_goes_down(cluster: MovableCluster) -> None:
    listed = cluster.main.request("GET", V1).json["metadata"]["resourceVersion"]

    _run(cluster, adopt)

    query = f"watch=true&timeoutSeconds=1&resourceVersion={listed}"
    watched = cluster.main.request("GET", f"{V1}?{query}")
    assert watched.json["object"]["code"] == 410
    now = cluster.main.request("GET", V1).json
    revisions = [int(item["metadata"]["resourceVersion"]) for item in now["items"]]
    assert min(revisions) > int(listed)


def test_a_return_keeps_uids_and_gives_created_objects_and_their_dependents_new_ones(
    cluster: MovableCluster,
) -> None:
    before = cluster.objects()
    _run(cluster, adopt)
    cluster.main.request("PATCH", f"{V1}/a", {"spec": {"size": 9}}, content_type=MERGE)
    cluster.main.request("PATCH", f"{V1}/a/status", {"status": {"seen": 4}}, content_type=MERGE)
    cluster.main.request("DELETE", f"{V1}/b")
    owner = cluster.create("owner")
    reference = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Report",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    cluster.create("dependent", ownerReferences=[reference])
    owned = {"name": "owned", "ownerReferences": [reference]}
    maps = "/api/v1/namespaces/default/configmaps"
    assert cluster.main.request("POST", maps, {"metadata": owned}).status == 201

    wrong = _run(cluster, _return)

    after = cluster.objects()
    assert wrong == []
    assert set(after) == {"a", "held", "owner", "dependent"}
    assert after["held"] == before["held"]
    assert after["a"]["metadata"]["uid"] == before["a"]["metadata"]["uid"]
    assert (after["a"]["spec"], after["a"]["status"]) == ({"size": 9}, {"seen": 4})
    fresh = after["owner"]["metadata"]["uid"]
    assert fresh != owner["metadata"]["uid"]
    shown = cluster.main.request("GET", f"{maps}/owned").json
    for dependent in (after["dependent"], shown):
        assert [each["uid"] for each in dependent["metadata"]["ownerReferences"]] == [fresh]


def test_a_return_asks_before_it_gives_new_uids(cluster: MovableCluster) -> None:
    _run(cluster, adopt)
    cluster.create("new")

    async def planned(move: GroupMove) -> Any:
        strict = MoveOptions(in_flight=0.05)
        return await look(replace(move, options=strict), back=True)

    plan = _run(cluster, planned)

    assert plan.since == {"created": {"reports": 1}, "changed": {}, "deleted": 0}
    assert any("--accept-new-uids" in each for each in plan.obstacles)


def test_a_plan_changes_nothing_and_names_what_is_in_the_way(cluster: MovableCluster) -> None:
    foreign = {
        "metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": None}},
        "spec": {"service": {"namespace": "default", "name": "other", "port": 443}},
    }
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/v2.{GROUP}"
    # The APIService of a new CRD comes a moment after it.
    eventually(
        lambda: cluster.main.request("PATCH", path, foreign, content_type=MERGE).status == 200
    )

    plan = _run(cluster, lambda move: look(move, back=False))

    assert any(f"v2.{GROUP} belongs to another server" in each for each in plan.obstacles)
    assert not _frozen(cluster)


def test_a_crd_that_is_being_deleted_is_in_the_way(cluster: MovableCluster) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/reports.{GROUP}"
    cluster.main.request("DELETE", path)  # it waits for the object with a finalizer

    plan = _run(cluster, lambda move: look(move, back=False))

    assert any("is being deleted" in each for each in plan.obstacles)


def _deletes(cluster: MovableCluster, path: str) -> bool:
    return cluster.main.request("DELETE", path).status == 200


class _Killed(BaseException):
    """The process ends here."""


def _killed_at(cluster: MovableCluster, work: Work, number: int) -> bool:
    """Run and be killed when the step with this number is told; False if it ended before."""
    told = 0

    def tell(text: str) -> None:
        nonlocal told
        told += 1
        if told == number:
            raise _Killed

    try:
        _run(cluster, work, tell)
    except _Killed:
        return True
    return False


def test_a_killed_adoption_is_finished_by_the_next_run(tmp_path: Path) -> None:
    number, killed = 0, True
    while killed:
        number += 1
        folder = tmp_path / str(number)
        with movable_cluster(folder) as cluster:
            before = cluster.objects()
            killed = _killed_at(cluster, adopt, number)
            assert _run(cluster, adopt) == []
            assert cluster.objects() == before
            assert cluster.stored_by_instar()
            assert not _frozen(cluster)
            cluster.create("after")
    assert number > 8  # each step was one of them


def test_a_killed_adoption_is_undone(tmp_path: Path) -> None:
    number, open_again = 0, False
    while not open_again:
        number += 1
        with movable_cluster(tmp_path / str(number)) as cluster:
            before = cluster.objects()
            _killed_at(cluster, adopt, number)
            open_again = cluster.stored_by_instar() and not _frozen(cluster)
            if open_again:
                with pytest.raises(AdoptError, match="--return"):
                    _run(cluster, undo)
                continue
            _run(cluster, undo)
            assert cluster.objects() == before
            assert not cluster.stored_by_instar()
            assert not _frozen(cluster)
    assert number > 6


def test_a_killed_return_is_finished_by_the_next_run(tmp_path: Path) -> None:
    number, killed = 0, True
    while killed:
        number += 1
        with movable_cluster(tmp_path / str(number)) as cluster:
            _run(cluster, adopt)
            cluster.main.request("PATCH", f"{V1}/a", {"spec": {"size": 9}}, content_type=MERGE)
            cluster.main.request("DELETE", f"{V1}/b")
            cluster.create("new")
            before = cluster.objects()
            killed = _killed_at(cluster, _return, number)
            assert _run(cluster, _return) == []
            after = cluster.objects()
            assert {name: obj["spec"] for name, obj in after.items()} == {
                name: obj["spec"] for name, obj in before.items()
            }
            assert after["a"]["metadata"]["uid"] == before["a"]["metadata"]["uid"]
            assert not cluster.stored_by_instar()
            assert not _frozen(cluster)
    assert number > 6


def test_several_rounds_forth_and_back(cluster: MovableCluster) -> None:
    with Writers(cluster) as writers:
        for _ in range(3):
            assert _run(cluster, adopt) == []
            assert _run(cluster, _return) == []

    found = {name: obj["spec"]["size"] for name, obj in cluster.objects().items()}
    assert {name: found[name] for name in writers.sizes} == writers.sizes


def test_the_journal_tells_the_steps_and_is_private(cluster: MovableCluster) -> None:
    _run(cluster, adopt)

    file = cluster.folder / "adopt.json"
    steps = [step for step, *_ in orjson.loads(file.read_bytes())["steps"]]
    assert steps[0] == "copy"
    assert steps[-3:] == ["unfreeze", "end watches", "verify"]
    assert file.stat().st_mode & 0o77 == 0


def test_what_an_adopted_group_needs_cannot_be_deleted_until_it_is_returned(
    cluster: MovableCluster,
) -> None:
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/reports.{GROUP}"
    all_crds = crd.rpartition("/")[0]
    _run(cluster, adopt)

    refused = {
        ("DELETE", crd): "the cluster deletes those in etcd",
        ("DELETE", all_crds): "the cluster deletes those in etcd",
        ("DELETE", f"{PATH}/v1.{GROUP}"): "without later changes",
    }
    for (method, path), told in refused.items():
        answer = cluster.main.request(method, path)
        assert (answer.status, told in answer.text) == (403, True), answer.text
        assert f"instar adopt --return {GROUP}" in answer.text
    local = cluster.main.request(
        "PATCH",
        f"{PATH}/v1.{GROUP}",
        {"spec": {"service": None, "caBundle": None}},
        content_type=MERGE,
    )
    assert local.status == 403, local.text
    trusted = {"metadata": {"annotations": {"example.com/note": "kept"}}}
    noted = cluster.main.request("PATCH", f"{PATH}/v1.{GROUP}", trusted, content_type=MERGE)
    assert noted.status == 200, noted.text
    assert len(cluster.objects()) == 3

    _run(cluster, _return)

    assert cluster.main.request("DELETE", f"{V1}/a").status == 200
    eventually(partial(_deletes, cluster, crd))


def test_a_crd_serves_a_new_version_once_it_is_routed(cluster: MovableCluster) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/reports.{GROUP}"
    third = [
        {"op": "copy", "from": "/spec/versions/1", "path": "/spec/versions/2"},
        {"op": "replace", "path": "/spec/versions/2/name", "value": "v3"},
    ]

    def add() -> Answer:
        return cluster.main.request("PATCH", path, third, content_type=JSON_PATCH)

    _run(cluster, adopt)
    early = add()
    _run(cluster, lambda move: adopt(_adding(move, "v3")))
    eventually(lambda: add().status == 200)

    assert early.status == 403
    assert "--add-version" in early.text
    v3 = V1.replace("/v1/", "/v3/")
    eventually(lambda: cluster.main.request("GET", v3).status == 200)
    assert set(cluster.objects(v3)) == {"a", "b", "held"}
    cluster.create("new")
    assert _run(cluster, _return) == []
    assert set(cluster.objects(v3)) == {"a", "b", "held", "new"}


def test_a_route_that_no_crd_came_to_use_goes_with_the_return(cluster: MovableCluster) -> None:
    _run(cluster, adopt)
    _run(cluster, lambda move: adopt(_adding(move, "v9")))

    assert _run(cluster, _return) == []

    assert cluster.main.request("GET", f"{PATH}/v9.{GROUP}").status == 404


def _adding(move: GroupMove, version: str) -> GroupMove:
    return replace(move, options=replace(move.options, add_versions=(version,)))


def test_a_second_adoption_does_not_replace_what_clients_wrote_in_instar(
    cluster: MovableCluster,
) -> None:
    _run(cluster, adopt)
    cluster.create("new")
    cluster.main.request("DELETE", f"{BINDINGS}/instar-adopted-{GROUP}")
    for version in ("v1", "v2"):
        eventually(partial(_deletes, cluster, f"{PATH}/{version}.{GROUP}"))

    async def again(move: GroupMove) -> Any:
        plan = await look(move, back=False)
        with pytest.raises(ApiError, match="were not returned"):
            await adopt(move)
        return plan

    plan = _run(cluster, again)

    assert any("--discard" in each for each in plan.obstacles)
