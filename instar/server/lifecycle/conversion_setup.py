"""Conversion services of a server, from its settings: webhook addresses, TLS, limits, timeouts.

``composition.py`` calls this once. How objects are converted is in ``wire/conversion``.
"""

from __future__ import annotations

from instar.server.registry.stored.backend import Backend
from instar.server.settings import Settings
from instar.wire.conversion.factory import ConversionServices
from instar.wire.conversion.lru_cache import ConversionCache
from instar.wire.conversion.metrics import PrometheusConversionMetrics
from instar.wire.storage.keys import collection_prefix
from instar.wire.webhooks.https import ClientCertificate
from instar.wire.webhooks.resolver import ServiceResolver, parse_mapping
from instar.wire.webhooks.transport import TransportPool, TransportSettings


def conversion_services(
    settings: Settings, backend: Backend, metrics: PrometheusConversionMetrics
) -> ConversionServices:
    """Raises ``ValueError`` for a setting that cannot be parsed."""
    services = collection_prefix("", "services")

    async def lookup(namespace: str, name: str) -> dict[str, object] | None:
        entry = backend.collection(services).entries.get(f"{namespace}/{name}")
        return None if entry is None else entry.decode()

    mappings = dict(parse_mapping(text) for text in settings.services)
    transport = TransportSettings(
        resolver=ServiceResolver(mappings, lookup),
        client_certificate=_client_certificate(settings),
        calls_at_once=settings.webhook_calls,
        calls_waiting=settings.webhook_queue,
    )
    return ConversionServices(
        transports=TransportPool(transport),
        metrics=metrics,
        memo=ConversionCache() if settings.conversion_cache else None,
        timeout=settings.webhook_timeout,
        timeouts=dict(_timeout(text) for text in settings.webhook_timeouts),
        in_process=settings.converters,
    )


def _client_certificate(settings: Settings) -> ClientCertificate | None:
    if settings.webhook_client_cert is None or settings.webhook_client_key is None:
        return None
    return ClientCertificate(str(settings.webhook_client_cert), str(settings.webhook_client_key))


def _timeout(text: str) -> tuple[str, float]:
    crd, _, seconds = text.partition("=")
    try:
        value = float(seconds)
    except ValueError:
        value = 0.0
    if not crd or not 0 < value < float("inf"):
        raise ValueError(f'"{text}" is no webhook timeout; expected CRD_NAME=SECONDS')
    return crd, value
