"""Nothing that works in the background ends unnoticed: each part is made to fail in a way it does
not expect, is counted, goes on, and is told by ``/readyz`` when it is gone."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.base import supervision as supervised
from instar.base.supervision import (
    FAILURES,
    SupervisedTask,
    SupervisedThread,
    Supervision,
    note_progress,
    rest,
)
from instar.server.audit.logfile import LogFile
from instar.server.audit.sinks import LOG
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.settings import AuditLogSettings, AuditSettings, EncryptionSettings
from instar.wire.storage.watchcache.collection import Change, Collection, WindowLimits
from tests.support.background import (
    UnexpectedError,
    in_loop,
    strike,
    supervision_of,
    tasks_of,
)
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

KEPT = {
    "backend-connections",
    "cache-consistency",
    "certificates",
    "compaction",
    "encryption-at-rest",
    "event-expiry",
    "flow-control",
    "identity-lease",
    "heap-trimming",
    "manager-lease",
    "packing",
    "storage-probe",
    "usage-counts",
}
"""Of a server on a file with encryption and audit; test_supervision_remote.py has those that need
etcd, an issuer, a webhook or workers."""
QUEUES = {
    "CRD",
    "deleted CRD",
    "disruption budget",
    "discovery of",
    "flow-schema",
    "mirrored endpoints",
    "OpenAPI of",
    "the availability of",
    "bootstrap objects",
    "object",
    "policy",
    "quotas of namespace",
    "roles:",
    "service range",
    "storage protection of",
    "terminating namespace",
    "the API service of",
    "the address",
    "the endpoints",
    "migration of",
    "converting ahead",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("supervised")
    policy = folder / "policy.yaml"
    rules = [{"level": "RequestResponse"}]
    kind = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
    policy.write_text(json.dumps({**kind, "rules": rules}))
    sealing = folder / "sealing.yaml"
    sealing.write_text(json.dumps(_sealing()))
    with live_server(
        storage=f"sqlite:{folder / 'db'}",
        bootstrap_objects=True,
        convert_ahead=True,
        authorization="RBAC",
        audit=AuditSettings(policy=policy, log=AuditLogSettings(path=str(folder / "log"))),
        encryption=EncryptionSettings(config=sealing),
    ) as running:
        eventually(lambda: {kept.record.name for kept in tasks_of(running)} == KEPT)
        yield running


def _sealing() -> dict[str, Any]:
    key = {"name": "k", "secret": base64.b64encode(b"0" * 32).decode()}
    provider = {"aescbc": {"keys": [key]}}
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [provider, {"identity": {}}]}],
    }


@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_task_that_fails_unexpectedly_is_counted_and_continues(
    server: LiveServer, name: str
) -> None:
    [kept] = [each for each in tasks_of(server) if each.record.name == name]
    before = FAILURES.value((name,))

    strike(server, kept)

    eventually(lambda: FAILURES.value((name,)) == before + 1)
    assert not kept.task.done()
    assert server.request("GET", "/readyz").status == 200
    assert f'instar_background_failures_total{{part="{name}"}}' in _metrics(server)


@pytest.mark.parametrize("name", ["compaction", "event-expiry"])
def test_readyz_tells_that_a_part_is_gone(name: str) -> None:
    with live_server() as server:
        [kept] = [each for each in tasks_of(server) if each.record.name == name]

        server.loop.call_soon_threadsafe(kept.task.cancel)  # by no stop of ours

        eventually(lambda: server.request("GET", "/readyz").status == 500)
        answer = server.request("GET", "/readyz/background")
        assert answer.text == f"internal server error: {name} has stopped\n"
        assert f'instar_background_trouble{{part="{name}"}} 1' in _metrics(server)


def _queues(server: LiveServer) -> dict[str, Queue[Any]]:
    found = (getattr(each, "__self__", None) for each in supervision_of(server)._troubles.values())
    return {each._what: each for each in found if isinstance(each, Queue)}


@pytest.mark.parametrize("name", sorted(QUEUES))
def test_a_controller_whose_item_fails_unexpectedly_continues_with_the_next(
    server: LiveServer, name: str
) -> None:
    queue = _queues(server)[name]
    attended: list[object] = []

    async def reconcile(key: object) -> float | None:
        attended.append(key)
        if len(attended) == 1:
            raise UnexpectedError(name)
        return None

    before, queue._reconcile = queue._reconcile, reconcile
    pauses, queue._backoff = queue._backoff, Backoff(0.01, 0.01)
    counted = FAILURES.value((name,))
    try:
        in_loop(server, lambda: queue.add("first"))
        eventually(lambda: FAILURES.value((name,)) == counted + 1)
        in_loop(server, lambda: queue.add("second"))
        eventually(lambda: "second" in attended)
        eventually(lambda: attended.count("first") == 2)  # it comes back after a pause
    finally:
        queue._reconcile, queue._backoff = before, pauses


def test_every_queue_is_known_to_the_supervision(server: LiveServer) -> None:
    assert _queues(server).keys() == QUEUES


def _metrics(server: LiveServer) -> str:
    return server.request("GET", "/metrics").text


def test_the_audit_log_continues_after_a_write_that_failed_unexpectedly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy.yaml"
    kind = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
    policy.write_text(json.dumps({**kind, "rules": [{"level": "Metadata"}]}))
    log = tmp_path / "log"
    write, failing = LogFile.write, [True]

    def fail(self: LogFile, lines: Any) -> None:
        if failing:
            raise UnexpectedError("write")
        write(self, lines)

    monkeypatch.setattr(LogFile, "write", fail)
    settings = AuditSettings(
        policy=policy, log=AuditLogSettings(path=str(log), mode="blocking-strict")
    )
    with live_server(audit=settings) as server:
        refused = server.request("GET", "/api/v1/namespaces")
        failing.clear()
        served = server.request("GET", "/api/v1/namespaces", headers={"Audit-ID": "T-after"})
        eventually(lambda: log.exists() and log.read_text().count("T-after") == 2)
        metrics = _metrics(server)

    assert (refused.status, served.status) == (500, 200)
    assert refused.json["message"].endswith("failed to store audit event")
    assert 'apiserver_audit_error_total{plugin="log"}' in metrics
    assert f'instar_background_failures_total{{part="{LOG}"}}' in metrics


def test_an_observer_that_fails_takes_no_event_from_the_others() -> None:
    collection: Collection[Any] = Collection("ex.io/foos/", 0, WindowLimits())
    seen: list[str] = []

    def fail(change: Change[Any]) -> None:
        raise UnexpectedError(change.suffix)

    collection.observers += [fail, lambda change: seen.append(change.suffix)]
    before = FAILURES.value(("controller-events",))

    collection.apply(Change(1, "a", None, None))

    assert seen == ["a"]
    assert FAILURES.value(("controller-events",)) == before + 1


def test_a_thread_that_fails_is_started_again_and_one_that_ends_is_reported() -> None:
    supervision, runs = Supervision(), threading.Semaphore(0)
    finish = threading.Event()

    def run() -> None:
        runs.release()
        if not finish.is_set():
            raise UnexpectedError

    kept = supervision.keep_thread("worker thread", run)
    assert runs.acquire(timeout=10)
    assert runs.acquire(timeout=10)  # the second run
    finish.set()
    kept.thread.join(10)

    assert kept.record.finished
    assert supervision.trouble() is None


def test_a_thread_ended_by_a_base_exception_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def run() -> None:
        raise SystemExit

    kept = SupervisedThread("worker thread", run)
    kept.thread.join(10)

    assert kept.trouble() == "worker thread has stopped"


@pytest.mark.anyio
async def test_a_part_that_keeps_failing_is_reported_until_it_is_stopped() -> None:
    supervision, often, runs = Supervision(), asyncio.Event(), []

    async def run() -> None:
        runs.append(1)
        if len(runs) > 3:
            often.set()
        raise UnexpectedError

    kept = supervision.keep("a part", run)
    await often.wait()

    assert supervision.trouble() == "a part keeps failing"
    await kept.stop()
    assert supervision.trouble() is None


@pytest.mark.anyio
async def test_a_part_that_neither_rests_nor_moves_on_has_stalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervised, "STALLED_SECONDS", 0.0)
    supervision, phases = Supervision(), asyncio.Queue[str]()
    stuck = asyncio.Event()

    async def run() -> None:
        phases.put_nowait("stuck")
        await stuck.wait()  # a lock that is never released, or a call without a deadline
        note_progress()
        phases.put_nowait("rests")
        await rest(3600)

    kept = supervision.keep("a part", run)
    assert await phases.get() == "stuck"
    assert supervision.trouble() == "a part has stalled"

    stuck.set()
    assert await phases.get() == "rests"
    await asyncio.sleep(0)
    assert supervision.trouble() is None
    await kept.stop()


@pytest.mark.anyio
async def test_a_thread_that_neither_rests_nor_moves_on_has_stalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervised, "STALLED_SECONDS", 0.0)
    supervision, begun, end = Supervision(), threading.Event(), threading.Event()

    def run() -> None:
        begun.set()
        end.wait(10)

    kept = supervision.keep_thread("a thread", run)
    assert begun.wait(10)

    assert supervision.trouble() == "a thread has stalled"
    end.set()
    kept.stop(10)


def test_every_task_rests_when_there_is_nothing_to_do(server: LiveServer) -> None:
    """So that one which does not, is known to have stalled."""
    eventually(lambda: {kept.record.name for kept in tasks_of(server) if not _rests(kept)} == set())


def _rests(kept: SupervisedTask) -> bool:
    return kept.record.finished or kept.record.pulse.rests == 1
