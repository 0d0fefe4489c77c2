"""What one replica has acknowledged, the other one knows: no wait, no stale answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from instar.base.json_values import Object
from tests.replicas.client import MERGE_PATCH
from tests.replicas.processes import Replica
from tests.replicas.resources import CRDS, crd, note, path, version
from tests.support.server import Answer
from tests.support.webhook import Webhook


def done(answer: Answer, status: int = 200) -> Any:
    assert answer.status == status, answer.text
    return answer.json


def create_crd(replica: Replica, group: str, **spec: Any) -> dict[str, Any]:
    """The CRD at rest: its status is written after the answer's revision."""
    created = done(replica.request("POST", CRDS, crd(group, **spec)), 201)
    name = created["metadata"]["name"]
    settled: dict[str, Any] = done(replica.request("GET", f"{CRDS}/{name}"))
    return settled


def create(replica: Replica, group: str, name: str, **spec: Any) -> dict[str, Any]:
    created: dict[str, Any] = done(
        replica.request("POST", path(group), note(group, name, **spec)), 201
    )
    return created


def test_a_crd_is_served_by_both_as_soon_as_its_creation_is_answered(
    one: Replica, other: Replica
) -> None:
    for number in range(10):
        group = f"served{number}.io"
        create_crd(one, group)
        done(other.request("GET", path(group)))
        create(one, group, "a")
        done(other.request("GET", path(group, "a")))


def test_names_are_given_once_although_both_decide(one: Replica, other: Replica) -> None:
    with ThreadPoolExecutor(2) as pool:
        for number in range(8):
            group = f"names{number}.io"
            wanted = [(one, crd(group, "cats")), (other, crd(group, "dogs"))]
            list(pool.map(lambda pair: done(pair[0].request("POST", CRDS, pair[1]), 201), wanted))
            found = [
                done(one.request("GET", f"{CRDS}/{plural}.{group}")) for plural in ("cats", "dogs")
            ]
            accepted = [_condition(crd, "NamesAccepted") for crd in found]
            assert sorted(accepted) == ["False", "True"]


def _condition(crd: dict[str, Any], kind: str) -> str:
    conditions = crd["status"]["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == kind))


def test_a_namespace_created_at_one_replica_takes_objects_at_the_second(
    one: Replica, other: Replica
) -> None:
    group = "namespaced.io"
    create_crd(one, group)
    for number in range(10):
        namespace = f"fresh-{number}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        done(one.request("POST", "/api/v1/namespaces", body), 201)
        where = path(group, namespace=namespace)
        done(other.request("POST", where, note(group, "a")), 201)


def test_an_update_based_on_the_newest_revision_is_no_conflict(
    one: Replica, other: Replica
) -> None:
    group = "revisions.io"
    create_crd(one, group)
    current = create(one, group, "a", count=0)
    for number in range(1, 60):
        current["spec"]["count"] = number
        replica = (one, other)[number % 2]
        current = done(replica.request("PUT", path(group, "a"), current))


def test_a_change_back_is_not_taken_for_no_change(one: Replica, other: Replica) -> None:
    group = "backandforth.io"
    create_crd(one, group)
    create(one, group, "a", last="left")
    for _ in range(40):
        done(one.request("PATCH", path(group, "a"), {"spec": {"last": "right"}}, MERGE_PATCH))
        done(other.request("PATCH", path(group, "a"), {"spec": {"last": "left"}}, MERGE_PATCH))
        assert done(one.request("GET", path(group, "a")))["spec"]["last"] == "left"


def test_an_object_deleted_through_one_replica_is_gone_at_the_second(
    one: Replica, other: Replica
) -> None:
    group = "deleted.io"
    create_crd(one, group)
    for _ in range(20):
        create(one, group, "a")
        done(other.request("DELETE", path(group, "a")))
        assert one.request("GET", path(group, "a")).status == 404


def test_a_read_uses_the_schema_written_at_the_second_replica(one: Replica, other: Replica) -> None:
    group = "schemas.io"
    definition = create_crd(one, group)
    create(one, group, "a")
    for number in range(15):
        mood = {"type": "string", "default": f"m{number}"}
        definition["spec"]["versions"] = [version("v1", storage=True, mood=mood)]
        definition = done(one.request("PUT", f"{CRDS}/notes.{group}", definition))
        seen = done(other.request("GET", path(group, "a")))
        assert seen["spec"]["mood"] == f"m{number}"
        listed = done(one.request("GET", path(group)))["items"]
        assert listed[0]["spec"]["mood"] == f"m{number}"


def test_a_remembered_conversion_ends_with_the_crd_it_was_made_under(
    one: Replica, other: Replica
) -> None:
    group = "converted.io"
    with Webhook(_saying("first")) as first, Webhook(_saying("second")) as second:
        definition = create_crd(
            one,
            group,
            versions=[version("v1", storage=True), version("v2")],
            conversion=first.conversion(),
        )
        create(one, group, "a", last="stored")
        at_v2 = path(group, "a").replace("/v1/", "/v2/")
        for _ in range(2):
            assert done(other.request("GET", at_v2))["spec"]["last"] == "first"
        assert first.objects == 1
        definition["spec"]["conversion"] = second.conversion()
        done(one.request("PUT", f"{CRDS}/notes.{group}", definition))
        assert done(other.request("GET", at_v2))["spec"]["last"] == "second"


def _saying(text: str) -> Any:
    def convert(obj: Object, api_version: str) -> Object:
        if api_version.endswith("/v1"):
            return {**obj, "apiVersion": api_version}
        return {**obj, "apiVersion": api_version, "spec": {"last": text}}

    return convert


def test_pages_continue_at_the_second_replica_at_the_same_revision(
    one: Replica, other: Replica
) -> None:
    group = "pages.io"
    create_crd(one, group)
    for number in range(6):
        create(one, group, f"a{number}", count=0)
    first = done(one.request("GET", path(group) + "?limit=3"))
    for number in range(6):
        done(one.request("DELETE", path(group, f"a{number}")))
    token = first["metadata"]["continue"]
    second = done(other.request("GET", f"{path(group)}?limit=3&continue={token}"))
    names = [item["metadata"]["name"] for item in [*first["items"], *second["items"]]]
    assert names == [f"a{number}" for number in range(6)]
    revision = first["metadata"]["resourceVersion"]
    assert second["metadata"]["resourceVersion"] == revision
    exact = f"{path(group)}?resourceVersion={revision}&resourceVersionMatch=Exact"
    assert len(done(other.request("GET", exact))["items"]) == 6
