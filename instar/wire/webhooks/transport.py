"""Webhook transport: POST with a deadline, requested retries and a limit on concurrent calls.

Used by conversion and admission, which build the body and check the answer. CRDs with the same
client configuration share connections, which outlive a change of the CRD.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from dataclasses import field
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from instar.base.fast_dataclass import dataclass
from instar.kube.api.crd import WebhookClient
from instar.wire.webhooks.call_limits import CallerLimit, Gate
from instar.wire.webhooks.connecting import PeerCertificate
from instar.wire.webhooks.dialer import Dialer
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.http_status import HttpReply, answer_in, seconds_to_retry
from instar.wire.webhooks.https import ClientCertificate, HttpsClient, tls_context
from instar.wire.webhooks.resolver import Resolver, ServiceResolver
from instar.wire.webhooks.url_path import clean_url_path

DEFAULT_TIMEOUT = 30.0
MOST_RETRIES = 10
MOST_TRANSPORTS = 200


class Transport(Protocol):
    """Posts one body to a webhook and returns its answer."""

    @property
    def address(self) -> str:
        """The webhook's URL, for messages."""
        ...

    async def post(self, body: bytes, *, seconds: float) -> bytes:
        """Post a body. Raises ``CallFailed``, or ``TooManyRequests`` when too many calls wait."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """How webhooks are reached: addresses, certificates, proxies."""

    resolver: Resolver = field(default_factory=ServiceResolver)
    client_certificate: ClientCertificate | None = None
    calls_at_once: int = 32
    """Limit per webhook."""
    calls_waiting: int = 512
    most_answer_bytes: int = 64 * 1024 * 1024
    proxies: bool = True
    """Use ``HTTPS_PROXY`` and ``NO_PROXY`` for ``url`` webhooks that are not on loopback."""


class WebhookTransport:
    """Transport of one webhook."""

    def __init__(self, client: WebhookClient, settings: TransportSettings) -> None:
        self.address = webhook_address(client)
        self._config = client
        self._settings = settings
        limits = f"the webhook {self.address}", settings.calls_at_once, settings.calls_waiting
        self.crowd = CallerLimit(*limits)
        """All callers that wait for this webhook, from any CRD."""
        self._gate = Gate(*limits)
        self._client: HttpsClient | None = None

    @property
    def certificate(self) -> PeerCertificate | None:
        return None if self._client is None else self._client.certificate

    @property
    def idle(self) -> bool:
        return not self.crowd.inside and not self._gate.inside and not self._gate.waiting

    async def post(
        self, body: bytes, *, seconds: float = DEFAULT_TIMEOUT, told: float | None = None
    ) -> bytes:
        """Post a body; ``told`` is the timeout sent to the webhook if it differs from
        ``seconds``."""
        url = f"{self.address}?timeout={go_duration(told or seconds)}"
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(deadline), self._gate:
                return answer_in(await self._attempts(url, body, deadline))
        except TimeoutError as error:
            raise CallFailed(
                f'Post "{url}": context deadline exceeded',
                advice=f"the webhook did not answer within {go_duration(seconds)}",
                timed_out=True,
            ) from error

    async def close(self) -> None:
        """Close the connections; a later ``post`` opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _attempts(self, url: str, body: bytes, deadline: float) -> HttpReply:
        loop = asyncio.get_running_loop()
        client = self._connected()
        for _ in range(MOST_RETRIES):
            reply = await client.post(url, body)
            wait = seconds_to_retry(reply)
            if wait is None or loop.time() + wait >= deadline:
                return reply
            await asyncio.sleep(wait)
        return await client.post(url, body)

    def _connected(self) -> HttpsClient:
        if self._client is None:
            service = self._config.service
            key = None if service is None else (service.namespace, service.name, service.port)
            self._client = HttpsClient(
                tls_context(self._config.ca_bundle, self._settings.client_certificate),
                Dialer(key, self._settings.resolver),
                _proxy_for(self.address) if self._settings.proxies and key is None else None,
                self._settings.most_answer_bytes,
            )
        return self._client


class TransportPool:
    """One transport per client configuration, shared by CRDs with the same one."""

    def __init__(self, settings: TransportSettings | None = None) -> None:
        self._settings = settings or TransportSettings()
        self._transports: OrderedDict[WebhookClient, WebhookTransport] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def transport_for(self, client: WebhookClient) -> WebhookTransport:
        transport = self._transports.get(client)
        if transport is None:
            transport = self._transports[client] = WebhookTransport(client, self._settings)
            self._drop_the_oldest()
        self._transports.move_to_end(client)
        return transport

    def certificates(self) -> dict[str, PeerCertificate]:
        """Return by address the certificates that webhooks presented last."""
        shown = ((item.address, item.certificate) for item in self._transports.values())
        return {address: certificate for address, certificate in shown if certificate}

    async def close(self) -> None:
        transports = list(self._transports.values())
        self._transports.clear()
        await asyncio.gather(*(item.close() for item in transports), *self._closing)

    def _drop_the_oldest(self) -> None:
        """Close the oldest idle transport; it reopens if its CRD still uses it."""
        if len(self._transports) <= MOST_TRANSPORTS:
            return
        idle = next((key for key, item in self._transports.items() if item.idle), None)
        if idle is None:
            return
        closing = asyncio.ensure_future(self._transports.pop(idle).close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def webhook_address(client: WebhookClient) -> str:
    """Return the URL of a webhook, without the query."""
    service = client.service
    if service is not None:
        host = f"{service.name}.{service.namespace}.svc:{service.port}"
        return f"https://{host}{clean_url_path(service.path)}"
    parts = urlsplit(client.url or "")
    return f"{parts.scheme}://{parts.netloc}{clean_url_path(parts.path)}"


def go_duration(seconds: float) -> str:
    """Format a duration as Go prints it: ``30s``, ``1m30s``, ``500ms``."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{rest:.9g}s"
    if hours:
        return f"{hours:.0f}h{minutes:.0f}m{text}"
    return f"{minutes:.0f}m{text}" if minutes else text


def _proxy_for(address: str) -> str | None:
    if not any(name.lower() == "https_proxy" for name in os.environ):
        return None
    # Imported here: it loads half of the standard library, and few calls need it.
    from urllib.request import getproxies, proxy_bypass

    host = urlsplit(address).hostname or ""
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if loopback or proxy_bypass(host):
        return None
    return getproxies().get("https")
