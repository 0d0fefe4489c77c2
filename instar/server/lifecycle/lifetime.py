"""Runs a server from start to stop: starts its parts in order and stops them in reverse.

``instar serve``, its workers and ``instar.testing`` enter the context manager
``running(Settings(...))``. What the parts are made of is in ``composition.py``; a server without a
port is in ``embedded.py``.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from instar.base.errors import TooManyRequests
from instar.base.fast_dataclass import dataclass
from instar.server.access.identities import front_proxy_of
from instar.server.access.peer_certificates import ProxiedPeers, plain_peer, signed_by
from instar.server.app import EVERY_ANSWER
from instar.server.files.host_address import advertised_address
from instar.server.files.temp_folder import temporary_folder
from instar.server.http.handler_types import Handler, PeerOf
from instar.server.http.messages import Request, Response
from instar.server.http.protocols import Connections
from instar.server.http.tls_transport import TlsListener
from instar.server.lifecycle.composition import ServerComponents
from instar.server.lifecycle.credentials import ServerCredentials, load_credentials
from instar.server.lifecycle.extension_authentication import authentication_data
from instar.server.lifecycle.heap_trim import trim_heap_periodically
from instar.server.lifecycle.http_port import HttpPort
from instar.server.lifecycle.loaded_settings import load_settings
from instar.server.lifecycle.optional_parts import tls_of
from instar.server.lifecycle.parts import Part, background_task, start_parts
from instar.server.lifecycle.storage_start import opened_store, packing_parts, values_of
from instar.server.registry.controllers.bootstrap.controller import BootstrapFacts
from instar.server.rest.error_responses import problem
from instar.server.rest.request_attributes import may_upgrade
from instar.server.settings import ClusterSettings, Settings
from instar.wire.webhooks.resolver import HostPort

if TYPE_CHECKING:
    from instar.server.cluster_home.home import JoinedCluster


@dataclass(frozen=True)
class RunningServer:
    """Address and admin credentials of a running server."""

    url: str
    token: str
    ca: bytes
    kubeconfig: Path
    machinery: ServerComponents


@contextlib.asynccontextmanager
async def running(
    settings: Settings | None = None, **overrides: Any
) -> AsyncIterator[RunningServer]:
    """A server from ``async with`` to its end. Without settings: memory store, any free port.

    ``overrides`` are single settings by name. A start that fails leaves nothing behind: what was
    opened or started is stopped, in the opposite order, before the failure is raised.
    """
    settings = replace(settings or Settings(port=0), **overrides)
    async with contextlib.AsyncExitStack() as stack:
        cert_dir, kubeconfig = settings.cert_dir, settings.kubeconfig
        if cert_dir is None or kubeconfig is None:
            folder = stack.enter_context(temporary_folder())
            cert_dir, kubeconfig = cert_dir or folder, kubeconfig or folder / "kubeconfig"
        given, joined = settings, None
        if settings.cluster is not None:
            joined, settings = await _joined(settings, settings.cluster, cert_dir)
        credentials = load_credentials(settings, cert_dir)
        loaded = load_settings(settings, credentials.identities, joined)
        store = await opened_store(settings, loaded.encryption, stack)
        machinery = ServerComponents(
            loaded, store, values_of(settings, store), credentials.proxy_pair()
        )
        port = _port(machinery, credentials)
        use = partial(_use_trust, machinery, port, credentials)
        machinery.home.on_trust_changed(given, cert_dir, use)
        await start_parts(_parts(machinery, port, credentials, kubeconfig), stack)
        yield RunningServer(
            port.url, credentials.token, credentials.authorities, kubeconfig, machinery
        )


def _parts(
    machinery: ServerComponents, port: HttpPort, credentials: ServerCredentials, kubeconfig: Path
) -> list[Part]:
    """The parts in start order; they are stopped in reverse."""
    return [
        port.port_part(),
        *machinery.loaded.request_parts(machinery.supervision),
        *packing_parts(machinery.backend, machinery.supervision),
        *machinery.reading_parts(),
        *machinery.background_parts(),
        background_task("certificates", credentials.tls.run, machinery.supervision),
        background_task("heap trimming", trim_heap_periodically, machinery.supervision),
        *machinery.controller_parts(),
        *_address_parts(machinery, port, credentials),
        machinery.readiness_part(),
        port.requests_part(),
        machinery.start_hooks_part(),
        Part("kubeconfigs", lambda: credentials.write_kubeconfigs(kubeconfig, port.url)),
    ]


def _address_parts(
    machinery: ServerComponents, port: HttpPort, credentials: ServerCredentials
) -> list[Part]:
    """Parts that publish the server's address, which is known once its port is open."""

    def publish() -> None:
        machinery.app.issuer_documents.address = port.url.removeprefix("https://")
        machinery.own_address.value = HostPort(machinery.settings.host, port.number)

    parts, bootstrap = [Part("issuer documents", publish)], machinery.controllers.bootstrap
    if bootstrap is not None:
        ca, settings = credentials.authorities.decode(), machinery.settings
        network = machinery.loaded.service_network
        authentication = authentication_data(machinery.settings, credentials.ca, credentials.proxy)

        def start() -> None:
            host = advertised_address(settings.advertise_address, settings.host)
            address = HostPort(host, port.number) if host else None
            bootstrap.start(BootstrapFacts(ca, authentication, address, port.number, network))

        parts.append(Part("bootstrap objects", start, bootstrap.stop))
    return parts


def _port(machinery: ServerComponents, credentials: ServerCredentials) -> HttpPort:
    settings, handler = machinery.settings, _handler(machinery)
    peers = _peers(settings, credentials.ca)
    connections = Connections(
        handler, _refuse_large_response, EVERY_ANSWER, peers, settings.streams_at_once
    )
    connections.streamed.upgradable = may_upgrade
    if machinery.aggregator is not None:
        machinery.aggregator.stream_bodies(connections.streamed)
    listener = TlsListener(credentials.tls.context, connections)
    return HttpPort(settings, connections, listener, machinery.end_watches)


def _handler(machinery: ServerComponents) -> Handler:
    front = machinery.settings.front
    if front is None:
        return machinery.app
    return front(machinery.app, machinery.loaded.identities.secret)


def _refuse_large_response(request: Request) -> Response:
    text = "too many large answers are being read at once, please try again later"
    return problem(TooManyRequests(text), request)


async def _joined(
    settings: Settings, cluster: ClusterSettings, folder: Path
) -> tuple[JoinedCluster, Settings]:
    # Imported here: few servers serve groups of another cluster.
    from instar.server.cluster_home.home import join

    return await join(settings, cluster, folder)


def _use_trust(
    machinery: ServerComponents, port: HttpPort, credentials: ServerCredentials, settings: Settings
) -> None:
    """Recognise clients of new connections by these settings. Raises ``ValueError``."""
    peers, proxies = _peers(settings, credentials.ca), front_proxy_of(settings.front_proxy)
    credentials.tls.replace(tls_of(settings, credentials.certificates))
    port.connections.peer_of, machinery.app.authenticator.front_proxy = peers, proxies


def _peers(settings: Settings, own: Path) -> PeerOf:
    proxy = settings.front_proxy
    if proxy is None:
        return plain_peer
    clients = [path for path in (own, settings.client_ca) if path is not None]
    return ProxiedPeers(signed_by(*clients), signed_by(proxy.ca), frozenset(proxy.names))
