"""A start that fails leaves nothing behind, whichever part or setting it fails at."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

import instar.testing
from instar.server.access.identities import JwtSettings, NewUser
from instar.server.files.certificates import ensure_certificates
from instar.server.files.kubeconfig import write_kubeconfig
from instar.server.http.connection_balancer import SOCKET
from instar.server.lifecycle import embedded as embedding
from instar.server.lifecycle import lifetime
from instar.server.lifecycle.embedded import embedded
from instar.server.lifecycle.lifetime import running
from instar.server.lifecycle.parts import Part, start_parts
from instar.server.registry.admission.plugin_names import HERE
from instar.server.registry.admission.plugins.image_policy import IMAGE_POLICY
from instar.server.settings import (
    AuditLogSettings,
    AuditSettings,
    AuditWebhookSettings,
    EncryptionSettings,
    Settings,
)
from instar.wire.storage.store import StoreError
from tests.support.inside import asked

_PARTS = (
    "port",
    "token issuers",
    "authorization webhook",
    "image policy webhook",
    "audit",
    "conversion webhooks",
    "watch cache",
    "watchdog",
    "home",
    "aggregated APIs",
    "backend connections",
    "catalog",
    "large collections",
    "compaction",
    "storage probe",
    "encryption at rest",
    "cache consistency",
    "flow control",
    "certificates",
    "heap trimming",
    "manager lease",
    "initial namespaces",
    "namespace controller",
    "CRD controller",
    "usage counts",
    "storage version migrations",
    "garbage collector",
    "quota controller",
    "policy type checks",
    "flow schemas",
    "storage protection",
    "disruption budgets",
    "mirrored endpoints",
    "service ranges",
    "event expiry",
    "conversion ahead of reads",
    "default roles",
    "leadership",
    "issuer documents",
    "bootstrap objects",
    "readiness",
    "requests",
    "start hooks",
    "kubeconfigs",
)
_EMBEDDED_PARTS = ("store", "watch cache", "watchdog", "catalog", "initial namespaces")
_WHEN = ("before it starts", "after it has started")


class Injected(Exception):
    """The failure a test puts into a part."""


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki")
    ensure_certificates(folder, ["localhost"])
    return folder


@pytest.fixture
def settings(tmp_path: Path, pki: Path) -> Settings:
    """With every optional part."""
    (tmp_path / "sockets").mkdir()
    webhook = tmp_path / "webhook.kubeconfig"
    write_kubeconfig(webhook, "https://127.0.0.1:1", (pki / "ca.crt").read_bytes(), "token")
    policy = _write(
        tmp_path / "policy.json",
        {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]},
    )
    audit = AuditSettings(
        policy=policy,
        log=AuditLogSettings(path=str(tmp_path / "audit.log")),
        webhook=AuditWebhookSettings(config=webhook),
    )
    return Settings(
        port=0,
        storage=f"sqlite:{tmp_path}/store.db",
        cert_dir=pki,
        shared_port=tmp_path / "sockets",
        values="disk",
        grace_seconds=0.02,
        encryption=EncryptionSettings(config=_encryption(tmp_path), reload=True),
        audit=audit,
        authorization="RBAC,Webhook",
        authorization_webhook=webhook,
        admission_plugins=HERE | {IMAGE_POLICY},
        admission_config=_images(tmp_path, webhook),
        tokens_of_others=JwtSettings(config=_authentication(tmp_path)),
        users=(NewUser("jane", (), tmp_path / "jane.kubeconfig"),),
    )


def _write(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


def _images(folder: Path, webhook: Path) -> Path:
    configuration = {"imagePolicy": {"kubeConfigFile": str(webhook)}}
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": IMAGE_POLICY, "configuration": configuration}],
    }
    return _write(folder / "admission.json", document)


def _encryption(folder: Path) -> Path:
    key = {"name": "one", "secret": base64.b64encode(bytes(32)).decode()}
    rule = {"resources": ["*.*"], "providers": [{"aescbc": {"keys": [key]}}]}
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [rule],
    }
    return _write(folder / "encryption.json", document)


def _authentication(folder: Path) -> Path:
    mapping = {"username": {"claim": "sub", "prefix": ""}}
    issuer = {"url": "https://127.0.0.1:1", "audiences": ["instar"]}
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [{"issuer": issuer, "claimMappings": mapping}],
    }
    return _write(folder / "authentication.json", document)


_POOLS = ("large_", "background_", "uvloop_", "asyncio_")


def _wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 5
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compares what the process holds before and after a test."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    uvloop.new_event_loop().close()  # the first makes a pipe for all that follow
    gc.collect()
    threads, files = _threads(), _open_files()
    yield
    gc.collect()
    assert _threads() <= threads
    _wait_until(lambda: _open_files() == files)  # other servers of this process open files, too
    assert _open_files() == files
    assert list(folder.iterdir()) == []


def _threads() -> set[threading.Thread]:
    """Without the pools for large work, which all servers of the process share, and without those
    of event loops, because a server that other tests share may start one at any time."""
    return {each for each in threading.enumerate() if not each.name.startswith(_POOLS)}


def _open_files() -> list[str]:
    """Files, sockets and pipes of this process, by what they are."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue  # the one that the folder was read with
    return sorted(found)


def _failing(part: Part, when: str) -> Part:
    async def start() -> None:
        if when == "after it has started":
            result = part.start()
            if result is not None:
                await result
        raise Injected

    return replace(part, start=start)


def _fail(patch: pytest.MonkeyPatch, module: object, name: str, when: str) -> None:
    async def start(parts: Iterable[Part], stack: AsyncExitStack) -> None:
        changed = [_failing(part, when) if part.name == name else part for part in parts]
        await start_parts(changed, stack)

    patch.setattr(module, "start_parts", start)


async def _serves(settings: Settings) -> None:
    async with running(settings) as server:
        assert (await asked(server.machinery, "GET", "/api/v1/namespaces/default"))[0] == 200
    assert _other_tasks() == set()


def _other_tasks() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


def test_the_parts_of_a_server_are_these_and_start_in_this_order(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    async def note(parts: Iterable[Part], stack: AsyncExitStack) -> None:
        listed = list(parts)
        started.extend(part.name for part in listed)
        await start_parts(listed, stack)

    monkeypatch.setattr(lifetime, "start_parts", note)
    asyncio.run(_serves(settings))
    assert started == list(_PARTS)


@pytest.mark.parametrize("when", _WHEN)
@pytest.mark.parametrize("name", _PARTS)
def test_a_part_that_fails_stops_all_others_and_the_next_start_works(
    settings: Settings, name: str, when: str
) -> None:
    async def scenario() -> None:
        with pytest.MonkeyPatch.context() as patch:
            _fail(patch, lifetime, name, when)
            with pytest.raises(Injected):
                async with running(settings):
                    pytest.fail("it runs nevertheless")
        assert _other_tasks() == set()
        await _serves(settings)

    asyncio.run(scenario())


def test_a_start_that_is_cancelled_leaves_nothing_behind(settings: Settings) -> None:
    async def scenario() -> None:
        reached = asyncio.Event()

        async def wait() -> None:
            reached.set()
            await asyncio.Event().wait()

        async def start(parts: Iterable[Part], stack: AsyncExitStack) -> None:
            last = "large collections"
            await start_parts(
                [replace(each, start=wait) if each.name == last else each for each in parts], stack
            )

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lifetime, "start_parts", start)
            serving = asyncio.create_task(_serves(settings))
            await reached.wait()
            serving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await serving
        assert _other_tasks() == set()
        await _serves(settings)

    asyncio.run(scenario())


@pytest.mark.parametrize("when", _WHEN)
@pytest.mark.parametrize("name", _EMBEDDED_PARTS)
def test_a_part_of_an_embedded_server_that_fails_stops_the_others(name: str, when: str) -> None:
    async def scenario() -> None:
        with pytest.MonkeyPatch.context() as patch:
            _fail(patch, embedding, name, when)
            with pytest.raises(Injected):
                async with embedded():
                    pytest.fail("it runs nevertheless")
        assert _other_tasks() == set()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "wrong",
    [
        {"service_cluster_ip_range": "10.0.0.0/zz"},
        {"services": ("nothing",)},
        {"webhook_timeouts": ("nothing",)},
        {"authorization": "Nobody"},
        {"token_file": Path("missing.csv")},
        {"admission_plugins": frozenset({"EventRateLimit"})},
        {"host": "192.0.2.1"},
        {"storage": "nothing:"},
        {"storage": "memory:"},  # has no file to read values from
        {"audit": AuditSettings(policy=Path("missing.json"))},
        {"encryption": EncryptionSettings(config=Path("missing.json"))},
        {"worker": True},
        {"kubeconfig": Path("/proc/nothing/kubeconfig")},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_wrong_setting_leaves_nothing_behind_and_the_next_start_works(
    settings: Settings, wrong: dict[str, Any]
) -> None:
    async def scenario() -> None:
        with pytest.raises((ValueError, OSError, StoreError)):
            async with running(settings, **wrong):
                pytest.fail("it runs nevertheless")
        assert _other_tasks() == set()
        await _serves(settings)

    asyncio.run(scenario())


def test_a_port_without_a_socket_for_workers_is_closed_again(
    settings: Settings, tmp_path: Path
) -> None:
    taken = tmp_path / "sockets" / SOCKET
    taken.touch()

    async def scenario() -> None:
        with pytest.raises(OSError, match="in use"):
            async with running(settings):
                pytest.fail("it runs nevertheless")
        taken.unlink()
        await _serves(settings)

    asyncio.run(scenario())


def test_a_server_of_a_test_suite_starts_after_one_that_could_not(tmp_path: Path) -> None:
    storage = f"sqlite:{tmp_path}/store.db"
    with (
        pytest.raises(ValueError, match=r"10\.0\.0\.0/zz"),
        instar.testing.server(storage=storage, service_cluster_ip_range="10.0.0.0/zz"),
    ):
        pytest.fail("it runs nevertheless")

    with instar.testing.server(storage=storage) as server:
        assert server.request("GET", "/readyz").status == 200


def test_a_part_that_cannot_be_stopped_hides_no_failure_and_keeps_no_other_from_stopping() -> None:
    stopped: list[str] = []

    def fail() -> None:
        raise Injected

    def broken() -> None:
        raise OSError("cannot be stopped")

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            parts = [
                Part("first", stop=lambda: stopped.append("first")),
                Part("second", stop=broken),
                Part("third", fail, lambda: stopped.append("third")),
            ]
            await start_parts(parts, stack)

    with pytest.raises(Injected):
        asyncio.run(scenario())
    assert stopped == ["third", "first"]
