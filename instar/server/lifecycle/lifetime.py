"""A running server: port, TLS, credentials, kubeconfig, orderly start and stop.

``running(Settings(...))`` is the same thing for the command line and for tests in process.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from instar.base.errors import TooManyRequests
from instar.base.fast_dataclass import dataclass
from instar.server.access.authorization import ALWAYS_ALLOW, modes_of
from instar.server.access.identities import (
    Identities,
    account_keys,
    anonymous_of,
    front_proxy_of,
    static_tokens,
    trusted_issuers,
)
from instar.server.access.peer_certificates import PeerOf, ProxiedPeers, plain_peer, signed_by
from instar.server.app import EVERY_ANSWER
from instar.server.files.certificates import ensure_certificates, user_certificate, write_private
from instar.server.files.kubeconfig import write_kubeconfig, write_user_kubeconfig
from instar.server.files.temp_folder import temporary_folder
from instar.server.http.connection_balancer import (
    Alone,
    Guest,
    Listening,
    ProtocolFactory,
    Reception,
)
from instar.server.http.fair_queue import Flow
from instar.server.http.http1 import Connections
from instar.server.http.tls_transport import TlsListener
from instar.server.lifecycle.composition import Machinery, build
from instar.server.lifecycle.heap_trim import trim_heap_periodically
from instar.server.lifecycle.optional_parts import (
    at_rest_of,
    audit_of,
    event_limits_of,
    extras_of,
    foreign_certificate,
    tls_of,
)
from instar.server.registry.controllers.bootstrap.controller import House
from instar.server.registry.stored.backend import Backend
from instar.server.rest.error_responses import problem
from instar.server.rest.handler_types import Handler
from instar.server.rest.request import Request
from instar.server.rest.responses import Response
from instar.server.settings import Settings
from instar.wire.conversion.factory import ConversionServices
from instar.wire.conversion.lru_cache import Memo
from instar.wire.conversion.metrics import PrometheusConversionMetrics
from instar.wire.storage.compactor import Compactor, Most
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.open import open_store
from instar.wire.storage.store import Checkable, Local, Store, StoreLost, Unavailable
from instar.wire.storage.value_reader import NoShelf, RecentValues, ValueReader, Values
from instar.wire.webhooks.https import ClientCertificate
from instar.wire.webhooks.resolver import ServiceResolver, parse_mapping
from instar.wire.webhooks.transport import TransportPool, TransportSettings

if TYPE_CHECKING:
    from instar.server.access.webhook_authorizer import WebhookAuthorizer
    from instar.server.lifecycle.encryption_setup import AtRest

log = logging.getLogger(__name__)
_PROBE_SECONDS = 2.0
_WRITE_TURNS = 15


@dataclass(frozen=True)
class RunningServer:
    """What a client needs to know of a server that is up."""

    url: str
    token: str
    ca: bytes
    kubeconfig: Path
    machinery: Machinery


@contextlib.asynccontextmanager
async def running(
    settings: Settings | None = None, **overrides: Any
) -> AsyncIterator[RunningServer]:
    """A server from ``async with`` to its end. Without settings: memory store, any free port.

    ``overrides`` are single settings by name.
    """
    settings = replace(settings or Settings(port=0), **overrides)
    if settings.cert_dir is not None and settings.kubeconfig is not None:
        async with _served(settings, settings.cert_dir) as server:
            yield server
        return
    with temporary_folder() as folder:
        async with _served(settings, folder) as server:
            yield server


@contextlib.asynccontextmanager
async def _served(settings: Settings, folder: Path) -> AsyncIterator[RunningServer]:
    modes = modes_of(settings.authorization)
    with _alone_in(settings.cert_dir or folder) as pki:
        certificates = ensure_certificates(pki, _names(settings))
        tls = tls_of(settings, certificates)
        token = _admin_token(pki)
        identities = _identities(settings, pki, token)
        issued = {user: user_certificate(pki, user.name, user.groups) for user in settings.users}
    webhook = _webhook_authorizer(settings, modes)
    at_rest, (auditor, counted) = at_rest_of(settings), audit_of(settings)
    limited = event_limits_of(settings)
    beside = settings.shared_port if settings.worker else None
    store = await open_store(settings.storage, settings.storage_options, beside=beside)
    if at_rest is not None:
        store = at_rest.before(store)
    values = await _values(settings.values, store)
    network = IPv4Network(settings.service_cluster_ip_range)
    machinery = build(
        store,
        identities=identities,
        authorization=modes,
        webhook_authorizer=webhook,
        of_several=settings.shared_port is not None,
        strict_namespaces=settings.strict_namespaces,
        request_timeout=settings.request_timeout,
        collect_garbage=settings.collect_garbage,
        service_network=network,
        furnish=settings.furniture,
        rescue_deletes=settings.rescue_deletes,
        read_only=settings.read_only,
        convert_ahead=settings.convert_ahead and settings.conversion_cache,
        review=settings.review,
        deny_breaking=settings.deny_breaking,
        local_admissions=settings.admissions,
        admission_plugins=settings.admission_plugins,
        event_limits=limited,
        extras=extras_of(at_rest, counted),
        auditor=auditor,
        values=values,
        loans=settings.loans,
        flow=Flow(settings.reads_at_once, settings.writes_at_once, settings.request_timeout / 4),
        make_conversion=lambda backend, metrics: conversion_services(settings, backend, metrics),
    )
    peers = _peers(settings, certificates.ca)
    handler: Handler = machinery.app
    if settings.front is not None:
        handler = settings.front(handler, identities.secret)
    connections = Connections(handler, _one_too_many, EVERY_ANSWER, peers)
    loop = asyncio.get_running_loop()
    try:
        listening = await _listening(settings, TlsListener(tls.context, connections))
    except OSError:
        await store.close()
        raise
    if identities.trusted is not None:
        identities.trusted.start()
    tasks: list[asyncio.Task[None]] = []
    if auditor is not None:
        auditor.start()
    try:
        await _start_backend(machinery.backend, at_rest, settings.fill)
        await machinery.begin()
        await _patiently(machinery.backend, machinery.backend.finish)
        tasks.append(_compactor(settings, store, machinery.backend))
        if at_rest is not None:
            tasks.append(loop.create_task(at_rest.run()))
        tasks.append(loop.create_task(_probing(machinery.backend)))
        tasks.append(loop.create_task(tls.run()))
        tasks.append(loop.create_task(machinery.consistency.run()))
        tasks.append(loop.create_task(trim_heap_periodically()))
        await machinery.start()
        await listening.start_serving()
        port = listening.port
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        url = f"https://{_reachable(host)}:{port}"
        machinery.app.issuer_documents.address = url.removeprefix("https://")
        ca = certificates.ca.read_bytes() + foreign_certificate(settings)
        path = settings.kubeconfig or folder / "kubeconfig"
        write_kubeconfig(path, url, ca, token)
        for user, pair in issued.items():
            write_user_kubeconfig(user.kubeconfig, url, ca, user.name, pair)
        if machinery.furniture is not None:
            machinery.furniture.start(House(ca.decode(), settings.host, port, network))
        yield RunningServer(url, token, ca, path, machinery)
    finally:
        listening.close()
        for resource in machinery.catalog.resources():
            resource.hub.end_all()
        await connections.close(settings.grace_seconds)
        if identities.trusted is not None:
            await identities.trusted.stop()
        if webhook is not None:
            await webhook.close()
        if auditor is not None:
            await auditor.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await machinery.stop()


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[Path]:
    """Replicas on one machine may start together on one folder: one makes, the others find."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


async def _listening(settings: Settings, make: ProtocolFactory) -> Listening:
    host, port, meeting = settings.host, settings.port, settings.shared_port
    if meeting is None:
        return await Alone.open(make, host, port)
    if settings.worker:
        return Guest(make, port, meeting)
    return await Reception.open(make, host, port, meeting)


def _one_too_many(request: Request) -> Response:
    text = "too many large answers are being read at once, please try again later"
    return problem(TooManyRequests(text), request)


async def _start_backend(
    backend: Backend, at_rest: AtRest | None, fill: Callable[[Store], Awaitable[None]] | None
) -> None:

    async def begin() -> None:
        nonlocal fill
        if at_rest is not None:
            await at_rest.warm()
        if fill is not None:
            await fill(backend.store)
            fill = None
        await backend.begin()

    await _patiently(backend, begin)


async def _patiently(backend: Backend, step: Callable[[], Awaitable[None]]) -> None:
    """Wait for a store that is not up yet; anything else is the operator's to mend."""
    delay = 0.1
    while True:
        try:
            await step()
            backend.cache.failure = None
            return
        except StoreLost:
            raise
        except Unavailable as error:
            backend.cache.failure = error
            log.warning("waiting for the storage: %s", error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, 5.0)


async def _values(where: str, store: Store) -> Values | None:
    """Where entries leave their bytes; None: they hold them."""
    if where == "memory":
        return None
    try:
        if not isinstance(store, ValueReader):
            raise NoShelf
        return RecentValues(store.values())
    except BaseException:
        await store.close()
        raise


async def _probing(backend: Backend) -> None:
    """Nobody may be asking anything when a store goes away or a disk is full; /readyz tells
    nevertheless. A store in a file is written to now and then, and after a failure until it works.
    """
    remote = not isinstance(backend.store, Local)
    checkable = isinstance(backend.store, Checkable)
    for turn in itertools.count(1):
        if not (remote or checkable):
            return
        await asyncio.sleep(_PROBE_SECONDS)
        if remote or backend.trouble is not None or turn % _WRITE_TURNS == 0:
            await backend.probe()


def _webhook_authorizer(settings: Settings, modes: tuple[str, ...]) -> WebhookAuthorizer | None:
    if "Webhook" not in modes:
        return None
    # Only here: few servers let another decide.
    from instar.server.access.webhook_authorizer import WebhookAuthorizer

    return WebhookAuthorizer.of(
        settings.authorization_webhook, settings.authorization_webhook_seconds
    )


def _identities(settings: Settings, pki: Path, token: str) -> Identities:
    all_allowed = ALWAYS_ALLOW in modes_of(settings.authorization)
    trusted = trusted_issuers(settings.tokens_of_others, settings.accounts)
    return Identities(
        static=static_tokens(token, settings.token_file),
        accounts=settings.accounts,
        keys=account_keys(settings.accounts, pki),
        anonymous=anonymous_of(settings.anonymous, trusted, all_allowed=all_allowed),
        front_proxy=front_proxy_of(settings.front_proxy),
        trusted=trusted,
    )


def _peers(settings: Settings, own: Path) -> PeerOf:
    proxy = settings.front_proxy
    if proxy is None:
        return plain_peer
    clients = [path for path in (own, settings.client_ca) if path is not None]
    return ProxiedPeers(signed_by(*clients), signed_by(proxy.ca), frozenset(proxy.names))


def _compactor(settings: Settings, store: Store, backend: Backend) -> asyncio.Task[None]:
    compactor = Compactor(
        store,
        keep=settings.history_seconds,
        most=Most(settings.history_bytes),
        compacted=backend.cache.compacted,
    )
    return asyncio.get_running_loop().create_task(compactor.run())


def conversion_services(
    settings: Settings, backend: Backend, metrics: PrometheusConversionMetrics
) -> ConversionServices:
    services = collection_prefix("", "services")

    async def lookup(namespace: str, name: str) -> dict[str, object] | None:
        entry = backend.collection(services).entries.get(f"{namespace}/{name}")
        return None if entry is None else entry.decode()

    mappings = dict(parse_mapping(text) for text in settings.services)
    certificate = None
    if settings.webhook_client_cert is not None and settings.webhook_client_key is not None:
        certificate = ClientCertificate(
            str(settings.webhook_client_cert), str(settings.webhook_client_key)
        )
    transport = TransportSettings(
        resolver=ServiceResolver(mappings, lookup),
        client_certificate=certificate,
        calls_at_once=settings.webhook_calls,
        calls_waiting=settings.webhook_queue,
    )
    return ConversionServices(
        transports=TransportPool(transport),
        metrics=metrics,
        memo=Memo() if settings.conversion_cache else None,
        timeout=settings.webhook_timeout,
        timeouts=dict(_timeout(text) for text in settings.webhook_timeouts),
        in_process=settings.converters,
    )


def _timeout(text: str) -> tuple[str, float]:
    crd, _, seconds = text.partition("=")
    try:
        value = float(seconds)
    except ValueError:
        value = 0.0
    if not crd or not 0 < value < float("inf"):
        raise ValueError(f'"{text}" is no webhook timeout; expected CRD_NAME=SECONDS')
    return crd, value


def _names(settings: Settings) -> list[str]:
    names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"]
    if settings.host not in ("0.0.0.0", "::", *names):
        names.append(settings.host)
    return [*names, *settings.extra_names]


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)


def _admin_token(folder: Path) -> str:
    """Kept beside the certificates, so a restart does not invalidate kubeconfigs."""
    path = folder / "admin.token"
    if path.exists():
        return path.read_text().strip()
    token = secrets.token_urlsafe(32)
    write_private(path, token.encode() + b"\n")
    return token
