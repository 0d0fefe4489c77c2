"""Builds a CRD's converter: the strategy, wrapped with batching, metrics and a cache.

Called by ``server/lifecycle/composition.py`` for each CRD that is served, and by the console's
conversion views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import partial

from instar.base.fast_dataclass import dataclass
from instar.kube.api.crd import Crd
from instar.wire.conversion.batching import BatchingConverter
from instar.wire.conversion.caching import SharedConverter
from instar.wire.conversion.converter import NoneConverter, VersionConverter
from instar.wire.conversion.in_process import (
    ConvertFunction,
    InProcessConverter,
    registered_for,
)
from instar.wire.conversion.instrumented import ConversionMetrics, MeasuredConverter, NoMetrics
from instar.wire.conversion.lru_cache import ConversionCache
from instar.wire.conversion.webhook import BatchLimits, WebhookConverter
from instar.wire.webhooks.transport import DEFAULT_TIMEOUT, TransportPool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionServices:
    """Services shared by the converters of all CRDs, for the lifetime of the server."""

    transports: TransportPool = field(default_factory=TransportPool)
    metrics: ConversionMetrics = field(default_factory=NoMetrics)
    memo: ConversionCache | None = field(default_factory=ConversionCache)
    """None disables the cache."""
    limits: BatchLimits = field(default_factory=BatchLimits)
    timeout: float = DEFAULT_TIMEOUT
    timeouts: Mapping[str, float] = field(default_factory=dict)
    """By CRD name; overrides ``timeout``."""
    in_process: Mapping[str, ConvertFunction] = field(default_factory=dict)
    """By CRD name or ``Kind.group``: functions to call here instead of the CRD's webhook."""

    async def close(self) -> None:
        await self.transports.close()


def converter_for(crd: Crd, services: ConversionServices) -> VersionConverter:
    """Return the converter. Raises ``ValueError`` with upstream's text for an unusable CRD."""
    strategy = crd.conversion.strategy
    if strategy == "None":
        return NoneConverter()
    if strategy != "Webhook":
        raise ValueError(f'unknown conversion strategy "{strategy}" for CRD {crd.name}')
    local = _in_process(crd, services)
    if local is not None:
        return _with_metrics(crd, local, local.address, services.metrics)
    client = crd.conversion.client
    if client is None or (client.url is None and client.service is None):
        raise ValueError("webhook configuration must have either service or URL")
    transport = services.transports.transport_for(client)
    webhook = WebhookConverter(
        crd,
        transport,
        limits=services.limits,
        timeout=services.timeouts.get(crd.name, services.timeout),
    )
    measured = _with_metrics(crd, webhook, transport.address, services.metrics)
    turned_away = partial(services.metrics.turned_away, crd.name, transport.address)
    return BatchingConverter(measured, transport.crowd, turned_away)


def _with_metrics(
    crd: Crd, inner: VersionConverter, address: str, metrics: ConversionMetrics
) -> MeasuredConverter:
    return MeasuredConverter(inner, metrics, crd=crd.name, webhook=address)


def shared_converter_for(crd: Crd, services: ConversionServices) -> SharedConverter:
    """Return the caching converter of one generation of the CRD; ``close`` it on a change."""
    converter = converter_for(crd, services)
    return SharedConverter(converter, services.memo, crd=crd.name, metrics=services.metrics)


def _in_process(crd: Crd, services: ConversionServices) -> InProcessConverter | None:
    function = registered_for(services.in_process, crd.name, crd.names.kind)
    if function is None:
        return None
    timeout = services.timeouts.get(crd.name, services.timeout)
    return InProcessConverter(crd, function, timeout=timeout)
