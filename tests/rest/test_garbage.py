"""Garbage collection over HTTP: what becomes of owners and dependents, in each policy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from tests.rest.support import Collection, foo_crd
from tests.support.server import LiveServer, live_server
from tests.support.storages import Storages, chosen_engine
from tests.support.waiting import eventually

MAPS = {"group": "", "plural": "configmaps", "kind": "ConfigMap"}


@pytest.fixture(scope="module")
def server(storages: Storages) -> Iterator[LiveServer]:
    """A server of these tests' own: what other tests leave to be collected must not delay them."""
    with live_server(storage=storages.empty(chosen_engine())) as running:
        yield running


@pytest.fixture
def space(foos: Collection, request: pytest.FixtureRequest) -> Collection:
    """A namespace of the test's own."""
    name = "".join(char if char.isalnum() else "-" for char in request.node.name)[-60:].strip("-")
    Collection(foos.server, "", "namespaces", "Namespace", "").create(name)
    return foos.at(namespace=name)


@pytest.fixture
def maps(space: Collection) -> Collection:
    return space.at(**MAPS)


def ref(owner: dict[str, Any], **more: Any) -> dict[str, Any]:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        **more,
    }


def owned(
    collection: Collection, name: str, *owners: dict[str, Any], **meta: Any
) -> dict[str, Any]:
    return collection.create(name, metadata={"ownerReferences": list(owners), **meta})


def wait_until_gone(collection: Collection, *names: str) -> None:
    """By a watch that begins before the objects do."""
    left = set(names)
    with collection.watch("&resourceVersion=1&timeoutSeconds=20") as stream:
        while left:
            event = stream.event()
            assert event is not None, f"still there: {left}"
            if event["type"] == "DELETED":
                left.discard(event["object"]["metadata"]["name"])


def wait_for(collection: Collection, name: str, **expected: Any) -> dict[str, Any]:
    """Until metadata of the object is as expected."""
    with collection.watch(f"&fieldSelector=metadata.name={name}&timeoutSeconds=20") as stream:
        while (event := stream.event()) is not None:
            metadata = event["object"]["metadata"]
            if all(metadata.get(key) == value for key, value in expected.items()):
                found: dict[str, Any] = event["object"]
                return found
    raise AssertionError(f"{name} never became {expected}")


def test_dependents_go_in_the_background_across_kinds(space: Collection, maps: Collection) -> None:
    owner = space.create("owner")
    child = owned(maps, "child", ref(owner))
    owned(space, "grandchild", ref(child))

    assert space.delete("owner").json["status"] == "Success"

    wait_until_gone(maps, "child")
    wait_until_gone(space, "grandchild")


def test_one_of_two_owners_gone_only_costs_its_reference(space: Collection) -> None:
    first, second = space.create("first"), space.create("second")
    owned(space, "child", ref(first), ref(second))

    space.delete("first")

    wait_for(space, "child", ownerReferences=[ref(second)])


def test_the_foreground_waits_for_dependents_that_block(space: Collection) -> None:
    owner = space.create("owner")
    owned(space, "held", ref(owner, blockOwnerDeletion=True), finalizers=["ex.io/hold"])
    owned(space, "free", ref(owner))

    marked = space.delete("owner", "?propagationPolicy=Foreground").json

    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    wait_until_gone(space, "free")
    assert space.get("owner")["metadata"]["deletionTimestamp"]
    assert space.get("held")["metadata"]["deletionTimestamp"]
    space.patch("held", {"metadata": {"finalizers": None}})
    wait_until_gone(space, "held", "owner")


def test_a_circle_of_owners_comes_apart_in_the_foreground(space: Collection) -> None:
    names = ("a", "b", "c")
    made = {name: space.create(name) for name in names}
    for name, owner in zip(names, ("c", "a", "b"), strict=True):
        owners = [ref(made[owner], blockOwnerDeletion=True)]
        assert space.patch(name, {"metadata": {"ownerReferences": owners}}).status == 200

    space.delete("a", "?propagationPolicy=Foreground")

    wait_until_gone(space, *names)


def test_orphans_lose_the_reference_and_stay(space: Collection) -> None:
    owner = space.create("owner")
    owned(space, "child", ref(owner))

    space.delete("owner", "?propagationPolicy=Orphan")

    wait_until_gone(space, "owner")
    assert "ownerReferences" not in space.get("child")["metadata"]


@pytest.mark.parametrize("change", [{"uid": "not-this-one"}, {"name": "nobody"}])
def test_an_owner_that_is_not_there_takes_its_dependent_along(
    space: Collection, change: dict[str, str]
) -> None:
    owner = space.create("owner")

    owned(space, "child", {**ref(owner), **change})

    wait_until_gone(space, "child")


def test_an_owner_in_another_namespace_does_not_count_and_an_event_says_so(
    space: Collection, foos: Collection
) -> None:
    owner = foos.create("elsewhere")

    owned(space, "child", ref(owner))

    wait_until_gone(space, "child")
    told = space.at(group="", plural="events")

    def strays() -> list[dict[str, Any]]:
        events = told.request("GET").json["items"]
        return [item for item in events if item["reason"] == "OwnerRefInvalidNamespace"]

    [event] = eventually(strays)  # the collection does not wait for the event
    expected = f'does not exist in namespace "{space.namespace}"'
    assert event["message"].endswith(expected)
    assert event["source"] == {"component": "garbage-collector-controller"}


def test_an_owner_of_an_unknown_kind_decides_nothing(space: Collection) -> None:
    stranger = {"apiVersion": "no.where/v1", "kind": "Nope", "name": "x", "uid": "y"}
    first = owned(space, "child", stranger)
    owned(space, "witness", {**ref(first), "name": "gone"})

    wait_until_gone(space, "witness")

    assert space.get("child")["metadata"]["ownerReferences"] == [stranger]


def test_a_cluster_scoped_owner_may_own_namespaced_objects(
    space: Collection, bars: Collection
) -> None:
    owner = bars.create("cluster-owner")
    owned(space, "child", ref(owner))

    bars.delete("cluster-owner")

    wait_until_gone(space, "child")


def test_nothing_is_collected_when_it_is_switched_off() -> None:
    with live_server(collect_garbage=False) as server:
        server.create_crd(foo_crd("off.ex.io"))
        foos = Collection(server, "off.ex.io")
        owner = foos.create("owner")
        owned(foos, "child", ref(owner))

        foos.delete("owner", "?propagationPolicy=Orphan")

        assert foos.get("owner")["metadata"]["finalizers"] == ["orphan"]
        assert foos.get("child")["metadata"]["ownerReferences"]


def test_orphans_are_collected_after_a_restart(tmp_path: Any) -> None:
    storage = f"sqlite:{tmp_path / 'store.db'}"
    with live_server(storage=storage, collect_garbage=False) as server:
        server.create_crd(foo_crd("restart.ex.io"))
        foos = Collection(server, "restart.ex.io")
        owned(foos, "child", ref(foos.create("owner")))
        foos.delete("owner")
    with live_server(storage=storage) as server:
        foos = Collection(server, "restart.ex.io")
        wait_until_gone(foos, "child")


def test_two_thousand_dependents_are_deleted_while_requests_are_served() -> None:
    with live_server(storage="memory:") as server:
        server.create_crd(foo_crd("many.ex.io"))
        foos = Collection(server, "many.ex.io")
        owner = foos.create("owner")
        asyncio.run(_fill_delete_and_probe(server, foos, ref(owner), 2_000))
        # By processor time: on a busy machine every request may take long.
        held = [one for one in server.running.machinery.watchdog.held if one.seconds > 0.5]
        assert not held
        assert foos.request("GET", "?limit=1").json["items"] == []


async def _fill_delete_and_probe(
    server: LiveServer, foos: Collection, owner: dict[str, Any], count: int
) -> None:
    """Delete an owner of many, and read other objects until all dependents are gone."""
    headers = {"Authorization": f"Bearer {server.token}"}
    url = server.url + foos.path
    connector = aiohttp.TCPConnector(limit=16, ssl=False)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:

        async def create(number: int) -> None:
            body = foos.obj(f"child-{number}", metadata={"ownerReferences": [owner]})
            async with session.post(url, json=body) as answer:
                assert answer.status == 201

        for start in range(0, count, 500):
            await asyncio.gather(*(create(number) for number in range(start, start + 500)))
        async with session.delete(f"{url}/owner") as answer:
            assert answer.status == 200
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            async with session.get(f"{server.url}/api/v1/namespaces/default") as answer:
                assert answer.status == 200
            async with session.get(f"{url}?limit=1") as answer:
                if not (await answer.json())["items"]:
                    return
    raise AssertionError("not all of them went")
