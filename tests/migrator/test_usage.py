"""Usage counted by the server, kept in the store, read from audit logs."""

from __future__ import annotations

import asyncio
import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object
from instar.kube.access.attributes import Attributes, User
from instar.server.registry.insight.usage import OTHER, RECORD, UsageRecorder
from instar.tools.migrator.census.usage import VersionUsage as KnownUsage
from instar.tools.migrator.census.usage import VersionUse, from_audit_logs
from instar.tools.migrator.live_crd import read_live_crd
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Write
from tests.migrator.support import crd, group_of, objects_path
from tests.support.server import LiveServer, live_server


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def _note(usage: UsageRecorder, agent: str, verb: str = "get") -> None:
    usage.note(Attributes(User("jane"), verb, "g", "v1", "widgets"), agent)


@given(st.lists(st.sampled_from("abcdefghijkl"), max_size=60))
def test_no_request_is_ever_lost_however_small_the_table(agents: list[str]) -> None:
    usage = UsageRecorder(Clock(), most=4)

    for agent in agents:
        _note(usage, agent)

    uses = usage.document()["uses"]
    assert sum(use["count"] for use in uses) == len(agents)
    assert len(uses) <= 5


def test_the_least_recently_seen_client_is_merged_first() -> None:
    usage = UsageRecorder(Clock(), most=2)

    for agent in ("old", "newer", "newest"):
        _note(usage, agent)

    agents = {use["userAgent"] for use in usage.document()["uses"]}
    assert "newest" in agents
    assert "old" not in agents
    assert OTHER in agents


def test_counts_of_several_processes_add_up_in_the_store() -> None:
    async def work() -> Object:
        store = MemoryStore()
        one, two = UsageRecorder(Clock()), UsageRecorder(Clock())
        _note(one, "kubectl")
        _note(two, "kubectl")
        await one.flush(store)
        await two.flush(store)
        _note(one, "kubectl")
        await one.flush(store)
        fresh = UsageRecorder(Clock())
        await fresh.load(store)
        return fresh.document()

    (use,) = asyncio.run(work())["uses"]

    assert use["count"] == 3


def test_nothing_new_writes_nothing() -> None:
    async def work() -> int:
        store = MemoryStore()
        usage = UsageRecorder(Clock())
        await usage.flush(store)
        return await store.barrier()

    first = asyncio.run(work())

    assert first == asyncio.run(MemoryStore().barrier())


def test_an_unreadable_record_starts_over() -> None:
    async def work() -> Object:
        store = MemoryStore()
        await store.commit(Write(RECORD, b"not json", 0))
        usage = UsageRecorder(Clock())
        await usage.load(store)
        _note(usage, "kubectl")
        await usage.flush(store)
        return usage.document()

    assert [use["count"] for use in asyncio.run(work())["uses"]] == [1]


def _uses(server: LiveServer, definition: Object) -> list[Object]:
    document = server.request("GET", "/instar/usage").json
    return [use for use in document["uses"] if use["group"] == group_of(definition)]


def test_the_server_counts_by_version_verb_and_client(server: LiveServer) -> None:
    definition = crd()
    server.create_crd(definition)
    path = objects_path(definition, "v1beta1")

    for _ in range(2):
        server.request("GET", path, headers={"User-Agent": "reader/1"})
    server.request("GET", objects_path(definition, "v1", "x"), headers={"User-Agent": "other"})

    found = {
        (use["version"], use["verb"], use["userAgent"]): use for use in _uses(server, definition)
    }
    assert found[("v1beta1", "list", "reader/1")]["count"] == 2
    assert found[("v1beta1", "list", "reader/1")]["user"] == "kubernetes-admin"
    assert ("v1", "get", "other") in found


def test_requests_for_an_unserved_version_are_counted_too(server: LiveServer) -> None:
    definition = crd(served=("v1",))
    server.create_crd(definition)

    answer = server.request("GET", objects_path(definition, "v1beta1"))

    assert answer.status == 404
    assert [use["version"] for use in _uses(server, definition)] == ["v1beta1"]


def test_counts_survive_a_restart(tmp_path: Path) -> None:
    storage = f"sqlite:{tmp_path / 'instar.db'}"
    definition = crd()
    with live_server(storage=storage) as server:
        server.create_crd(definition)
        server.request("GET", objects_path(definition, "v1"), headers={"User-Agent": "before"})
        since = server.request("GET", "/instar/usage").json["since"]

    with live_server(storage=storage) as server:
        (use,) = _uses(server, definition)
        assert use["userAgent"] == "before"
        assert server.request("GET", "/instar/usage").json["since"] == since


@pytest.mark.parametrize("path", ["/instar/usage", "/instar/census"])
def test_strangers_learn_nothing(server: LiveServer, path: str) -> None:
    assert server.request("GET", path, token=None).status == 403
    assert server.request("POST", path, {}).status == 404


def _event(definition: Object, version: str, **changes: Any) -> str:
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "verb": "list",
        "user": {"username": "jane"},
        "userAgent": "kubectl/v1.32",
        "objectRef": {
            "resource": "widgets",
            "apiGroup": group_of(definition),
            "apiVersion": version,
        },
        "requestReceivedTimestamp": "2026-05-01T10:00:00.123456Z",
        **changes,
    }
    return json.dumps(event) + "\n"


def test_audit_logs_tell_the_same_story(tmp_path: Path) -> None:
    definition = crd()
    late = "2026-05-03T10:00:00.000000Z"
    plain, packed = tmp_path / "audit.log", tmp_path / "audit.log.gz"
    plain.write_text(
        _event(definition, "v1beta1")
        + "not an event\n"
        + _event(definition, "v1beta1", stage="RequestReceived")
        + _event(definition, "v1", objectRef={"resource": "pods", "apiVersion": "v1"})
    )
    packed.write_bytes(
        gzip.compress(_event(definition, "v1beta1", requestReceivedTimestamp=late).encode())
    )

    usage = from_audit_logs([plain, packed], read_live_crd(definition))

    (use,) = usage.uses
    assert (use.version, use.verb, use.user, use.count) == ("v1beta1", "list", "jane", 2)
    assert use.last == datetime(2026, 5, 3, 10, tzinfo=UTC)
    assert usage.since == datetime(2026, 5, 1, 10, 0, 0, 123456, tzinfo=UTC)


def test_requests_of_instars_own_commands_are_not_counted() -> None:
    now = datetime.now(UTC)
    agents = ("instar", "instar-migrate", "instar-versions", "instar-operator/1.0", "kubectl")
    usage = KnownUsage(now, [VersionUse("v1", "list", "me", agent, 1, now) for agent in agents])

    users = usage.users("v1", now - timedelta(days=1))

    assert {use.agent for use in users} == {"instar-operator/1.0", "kubectl"}


def test_usage_counts_the_impersonated_user(tmp_path: Path) -> None:
    event = {
        "stage": "ResponseComplete",
        "verb": "get",
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        "user": {"username": "admin"},
        "impersonatedUser": {"username": "ci"},
        "objectRef": {"apiGroup": "g.example.com", "resource": "widgets", "apiVersion": "v1"},
    }
    (tmp_path / "audit.log").write_text(json.dumps(event) + "\n")
    definition = crd()
    definition["spec"]["group"] = "g.example.com"

    usage = from_audit_logs([tmp_path / "audit.log"], read_live_crd(definition))

    assert [use.user for use in usage.uses] == ["ci"]
