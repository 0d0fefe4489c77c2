"""Background parts that need etcd, an issuer, an audit webhook or workers are made to fail in ways
they do not expect: each is counted and goes on."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.base.errors import Forbidden
from instar.base.supervision import FAILURES, SupervisedTask, Supervision
from instar.cli.serving.workers import Worker
from instar.server.access.identities import JwtSettings
from instar.server.endpoints.metrics import Metrics
from instar.server.lifecycle import metrics_merge
from instar.server.lifecycle.metrics_merge import merge_worker_metrics, share_worker_metrics
from instar.server.registry.controllers import leadership
from instar.server.settings import AuditSettings, AuditWebhookSettings
from instar.wire.storage.etcd.watch import EtcdWatch
from instar.wire.storage.store import StoreError
from instar.wire.storage.watchcache.cache import Cache
from tests.storage.etcd_server import EtcdCluster
from tests.storage.test_beside import Cluster, beside
from tests.support.background import (
    UnexpectedError,
    audit_kubeconfig,
    fail_wait,
    in_loop,
    strike,
    supervision_of,
    tasks_of,
)
from tests.support.issuer import local_issuer
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

REMOTE = {"audit-webhook", "authentication-configuration", "leadership", "oidc-keys"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("remote")
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    (folder / "policy.yaml").write_text(json.dumps(policy))
    (folder / "audit.yaml").write_text(json.dumps(audit_kubeconfig("http://127.0.0.1:9/")))
    with (
        EtcdCluster(folder, members=1) as cluster,
        local_issuer(folder / "issuer") as issuer,
    ):
        (folder / "authentication.yaml").write_text(json.dumps(_trusting(issuer)))
        with live_server(
            storage=f"etcd://{cluster.addresses[0]}/{uuid.uuid4()}",
            tokens_of_others=JwtSettings(config=folder / "authentication.yaml"),
            audit=AuditSettings(
                policy=folder / "policy.yaml",
                webhook=AuditWebhookSettings(config=folder / "audit.yaml"),
            ),
        ) as running:
            eventually(lambda: {kept.record.name for kept in tasks_of(running)} >= REMOTE)
            yield running


def _trusting(issuer: Any) -> Any:
    jwt = {
        "issuer": {
            "url": issuer.url,
            "certificateAuthority": issuer.authority,
            "audiences": ["kube"],
        },
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    }
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    return {**kind, "jwt": [jwt]}


@pytest.mark.parametrize("name", sorted(REMOTE))
def test_a_remote_task_that_fails_unexpectedly_is_counted_and_continues(
    server: LiveServer, name: str
) -> None:
    [kept] = [each for each in tasks_of(server) if each.record.name == name]
    before = FAILURES.value((name,))

    strike(server, kept)

    eventually(lambda: FAILURES.value((name,)) == before + 1)
    assert not kept.task.done()


def test_every_remote_task_rests_when_there_is_nothing_to_do(server: LiveServer) -> None:
    eventually(lambda: {kept.record.name for kept in tasks_of(server) if not _rests(kept)} == set())


def _rests(kept: SupervisedTask) -> bool:
    return kept.record.finished or kept.record.pulse.rests == 1


@pytest.mark.parametrize("failure", [UnexpectedError, asyncio.CancelledError])
def test_an_etcd_watch_that_fails_unexpectedly_continues(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    before = FAILURES.value(("etcd-watch",))
    follow, struck = EtcdWatch._follow, list[int]()

    async def fail_once(self: EtcdWatch) -> None:
        if not struck:
            struck.append(1)
            raise failure
        await follow(self)

    monkeypatch.setattr(EtcdWatch, "_follow", fail_once)
    watch = _etcd_watch(server)

    in_loop(server, watch._leave_silent_member)  # it begins again, with the failing method

    eventually(lambda: FAILURES.value(("etcd-watch",)) == before + 1)
    maps, name = "/api/v1/namespaces/default/configmaps", f"after-{failure.__name__.lower()}"
    made = server.request("POST", maps, {"metadata": {"name": name}})
    assert made.status == 201
    assert server.request("GET", f"{maps}/{name}").status == 200


def _etcd_watch(server: LiveServer) -> EtcdWatch:
    watches = [each for each in gc.get_objects() if isinstance(each, EtcdWatch)]
    return next(each for each in watches if not each.done)


@pytest.mark.parametrize("failure", [UnexpectedError, asyncio.CancelledError])
def test_a_cache_that_cannot_be_loaded_again_says_so_and_retries(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    cache = server.running.machinery.backend.cache
    state, failing = Cache._state, [True]

    async def fail(self: Any) -> Any:
        if failing:
            raise failure
        return await state(self)

    monkeypatch.setattr(Cache, "_state", fail)
    watch = _etcd_watch(server)

    in_loop(server, lambda: watch.end(StoreError("struck")))

    eventually(lambda: server.request("GET", "/readyz/etcd").status == 500)
    failing.clear()
    eventually(lambda: server.request("GET", "/readyz/etcd").status == 200)
    assert cache.failure is None


def test_readyz_says_that_no_server_leads(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    led = server.running.machinery.controllers.leadership
    assert led.leads

    async def refused(self: Any) -> bool:
        raise Forbidden("the namespace is being deleted")

    monkeypatch.setattr(leadership, "_LEADERLESS_SECONDS", 0.0)
    monkeypatch.setattr(leadership, "_RENEW_SECONDS", 0.01)
    monkeypatch.setattr(leadership.Leadership, "_hold", refused)

    eventually(lambda: not led.leads, 20)
    answer = server.request("GET", "/readyz/background")
    assert "no server leads the controllers" in answer.text
    monkeypatch.undo()
    eventually(lambda: led.leads, 20)
    eventually(lambda: supervision_of(server).trouble() is None)


def test_the_supervisor_of_a_worker_continues(tmp_path: Path) -> None:
    async def scenario() -> None:
        supervision = Supervision()
        program = "import sys; print('ready', flush=True); sys.stdin.read()"
        worker = Worker([sys.executable, "-c", program])
        await worker.start(supervision=supervision)
        try:
            await _struck(supervision, "worker")
        finally:
            await worker.stop()

    asyncio.run(scenario())


def test_the_store_server_for_workers_continues(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with beside(Cluster(), tmp_path) as (lender, _):
            await _struck(lender._supervision, "lending")

    asyncio.run(scenario())


def test_the_merge_of_metrics_continues_and_shows_a_worker_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_merge, "_SILENT_SECONDS", 0.0)

    async def scenario() -> None:
        supervision = Supervision()
        async with merge_worker_metrics(Metrics(), tmp_path, supervision):
            await _struck(supervision, "numbers-of-workers")
            async with share_worker_metrics(Metrics(), tmp_path):
                assert supervision.trouble() == "a worker does not answer"
            assert supervision.tasks()

    asyncio.run(scenario())


async def _struck(supervision: Supervision, name: str) -> None:
    kept = _task(supervision, name)
    before = FAILURES.value((name,))
    fail_wait(kept)
    await asyncio.to_thread(eventually, lambda: FAILURES.value((name,)) == before + 1)
    assert not kept.task.done()


def _task(supervision: Supervision, name: str) -> SupervisedTask:
    return next(kept for kept in supervision.tasks() if kept.record.name == name)
