"""Graphs of owners that nobody would draw on purpose: circles, owners of themselves, thousands of
references, thousands of dependents, kinds that come and go. The collector does a bounded amount of
work for each and comes to rest, as upstream's does (seen on kube-controller-manager 1.36.4)."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instar.server.registry.controllers.garbage import collector as collecting
from instar.server.registry.controllers.garbage.foreign_owners import ForeignOwnerSearch
from instar.server.registry.controllers.garbage.owner_graph import (
    OwnerGraphNode,
    OwnerIndex,
    OwnerReference,
)
from tests.rest.support import foo_crd
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

MAPS = "/api/v1/namespaces/default/configmaps"
NAMES = ("a", "b", "c", "d")
POLICIES = ("Foreground", "Background", "Orphan")


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        yield running


def ref(name: str, uid: str, *, blocks: bool = False, kind: str = "ConfigMap") -> dict[str, Any]:
    found = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}
    return {**found, "blockOwnerDeletion": True} if blocks else found


def create(server: LiveServer, name: str, refs: Any = (), **more: Any) -> str:
    metadata = {"name": name, "ownerReferences": list(refs), **more}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    answer = server.request("POST", MAPS, body)
    assert answer.status == 201, answer.text
    return str(answer.json["metadata"]["uid"])


def own(server: LiveServer, name: str, *refs: dict[str, Any]) -> None:
    patch = {"metadata": {"ownerReferences": list(refs)}}
    kind = "application/merge-patch+json"
    answer = server.request("PATCH", f"{MAPS}/{name}", patch, content_type=kind)
    assert answer.status == 200, answer.text


def delete(server: LiveServer, name: str, policy: str) -> None:
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
    assert server.request("DELETE", f"{MAPS}/{name}", options).status in (200, 404)


def is_at_rest(server: LiveServer) -> bool:
    """Nothing is worked on and nothing waits, but for what looks again in half a minute."""
    garbage = server.running.machinery.controllers.garbage
    assert garbage is not None
    work = garbage._work
    return not work._running and not work._waiting and not garbage._graph._unread


def left(server: LiveServer, *names: str) -> dict[str, list[tuple[str, bool]]]:
    found = {}
    for name in names:
        answer = server.request("GET", f"{MAPS}/{name}")
        if answer.status == 200:
            metadata = answer.json["metadata"]
            owners = metadata.get("ownerReferences", [])
            found[name] = [(one["name"], one.get("blockOwnerDeletion", False)) for one in owners]
    return found


def clean_up(server: LiveServer, *names: str) -> None:
    for name in names:
        own_nothing = {"metadata": {"ownerReferences": None, "finalizers": None}}
        kind = "application/merge-patch+json"
        server.request("PATCH", f"{MAPS}/{name}", own_nothing, content_type=kind)
        server.request("DELETE", f"{MAPS}/{name}?propagationPolicy=Background")


def test_an_object_that_blocks_its_own_deletion_stays_without_retries(server: LiveServer) -> None:
    uid = create(server, "self-blocking")
    own(server, "self-blocking", ref("self-blocking", uid, blocks=True))

    delete(server, "self-blocking", "Foreground")

    eventually(lambda: is_at_rest(server))
    assert left(server, "self-blocking") == {"self-blocking": [("self-blocking", True)]}
    clean_up(server, "self-blocking")


def test_an_object_that_owns_itself_without_blocking_is_deleted(server: LiveServer) -> None:
    uid = create(server, "self-free")
    own(server, "self-free", ref("self-free", uid))

    delete(server, "self-free", "Foreground")

    eventually(lambda: not left(server, "self-free"))


def test_a_circle_through_what_blocks_itself_rests(server: LiveServer) -> None:
    one, other = create(server, "round-a"), create(server, "round-b")
    own(server, "round-a", ref("round-a", one, blocks=True), ref("round-b", other, blocks=True))
    own(server, "round-b", ref("round-a", one, blocks=True))

    delete(server, "round-a", "Foreground")

    expected = {
        "round-a": [("round-a", True), ("round-b", True)],
        "round-b": [("round-a", False)],
    }
    eventually(lambda: left(server, "round-a", "round-b") == expected and is_at_rest(server))
    clean_up(server, "round-a", "round-b")


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[tuple[str, bool, str]]]:
    """Owner, whether it is blocked, and how the reference lies."""
    edge = st.tuples(
        st.sampled_from(NAMES),
        st.booleans(),
        st.sampled_from(["right", "right", "right", "another uid", "unknown kind"]),
    )
    return {name: draw(st.lists(edge, max_size=3, unique_by=lambda e: e[0])) for name in NAMES}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(), st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(POLICIES)), min_size=1))
def test_every_graph_of_owners_comes_to_rest(
    server: LiveServer,
    graph: dict[str, list[tuple[str, bool, str]]],
    deletions: list[tuple[str, str]],
) -> None:
    uids = {name: create(server, name) for name in NAMES}
    try:
        for name, edges in graph.items():
            refs = []
            for owner, blocks, lie in edges:
                uid = str(uuid.uuid4()) if lie == "another uid" else uids[owner]
                kind = "Nothing" if lie == "unknown kind" else "ConfigMap"
                refs.append(ref(owner, uid, blocks=blocks, kind=kind))
            patch = {"metadata": {"ownerReferences": refs}}
            kind = "application/merge-patch+json"
            server.request("PATCH", f"{MAPS}/{name}", patch, content_type=kind)
        for name, policy in deletions:
            delete(server, name, policy)

        eventually(lambda: is_at_rest(server))
    finally:
        clean_up(server, *NAMES)
        eventually(lambda: not left(server, *NAMES))


def test_thousands_of_references_to_a_missing_owner_are_looked_up_once(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was searched for by itself among all objects, in the event loop: 18 s for 6,000."""
    searches: list[int] = []
    search = ForeignOwnerSearch._look_through

    async def counted(self: ForeignOwnerSearch, question: Any) -> None:
        searches.append(len(question.sought))
        await search(self, question)

    monkeypatch.setattr(ForeignOwnerSearch, "_look_through", counted)
    owner = create(server, "solid-owner")
    refs = [ref(f"none-{number}", str(uuid.uuid4())) for number in range(3_000)]

    create(server, "many-references", [*refs, ref("solid-owner", owner)])

    eventually(
        lambda: left(server, "many-references")["many-references"] == [("solid-owner", False)]
    )
    eventually(lambda: is_at_rest(server))
    assert len(searches) <= 2
    assert sum(searches) <= 25  # an object is told of so many strays and no more
    clean_up(server, "many-references", "solid-owner")


def test_an_owner_is_processed_a_few_times_however_many_dependents_it_waits_for(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each dependent that went had the owner look at all that were left."""
    looks: Counter[str] = Counter()
    let_go = collecting.GarbageCollector._let_go

    async def counted(self: Any, resource: Any, node: OwnerGraphNode, facts: Any) -> None:
        looks[node.suffix] += 1
        await let_go(self, resource, node, facts)

    monkeypatch.setattr(collecting.GarbageCollector, "_let_go", counted)
    owner = create(server, "fan-owner")
    for number in range(400):
        create(server, f"fan-{number}", [ref("fan-owner", owner, blocks=True)])

    delete(server, "fan-owner", "Foreground")

    eventually(lambda: not left(server, "fan-owner"))
    assert looks["default/fan-owner"] <= 6


def test_owners_of_a_kind_that_comes_and_goes_come_to_rest(server: LiveServer) -> None:
    foos = "/apis/graph.io/v1/namespaces/default/foos"
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for turn in range(3):
        crd = foo_crd("graph.io")
        server.create_crd(crd)
        version = crd["spec"]["versions"][0]["name"]
        path = foos.replace("/v1/", f"/{version}/")
        body = {"apiVersion": f"graph.io/{version}", "kind": "Foo", "metadata": {"name": "f"}}
        uid = server.request("POST", path, body).json["metadata"]["uid"]
        owned = {**ref("f", uid, blocks=True, kind="Foo"), "apiVersion": f"graph.io/{version}"}
        create(server, f"of-{turn}", [owned])
        server.request("DELETE", f"{crds}/foos.graph.io")
        eventually(lambda: server.request("GET", f"{crds}/foos.graph.io").status == 404)

    eventually(lambda: is_at_rest(server))
    clean_up(server, *(f"of-{turn}" for turn in range(3)))


EDGES = st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=4)


@given(st.lists(st.tuples(st.integers(0, 5), EDGES), max_size=20))
def test_the_owner_index_equals_a_plain_table_after_any_writes(
    writes: list[tuple[int, list[tuple[int, bool]]]],
) -> None:
    index, plain = OwnerIndex(), dict[OwnerGraphNode, tuple[OwnerReference, ...]]()
    for number, edges in writes:
        node = OwnerGraphNode("x/", str(number))
        refs = tuple(OwnerReference(str(uid), "v1", "K", "n", blocks) for uid, blocks in edges)
        index.put(node, refs)
        plain[node] = refs

    for uid in map(str, range(6)):
        dependents = {n for n, refs in plain.items() if any(one.uid == uid for one in refs)}
        blocked = any(one.uid == uid and one.blocks for refs in plain.values() for one in refs)
        assert set(index.dependents(uid)) == dependents
        assert index.has_dependents(uid) == bool(dependents)
        assert index.is_blocked(uid) == blocked
