"""Conversions of one request: measures how long it waited for webhooks, and can bypass the cache.

``server/app.py`` wraps requests for resources with a conversion webhook in it. With
``X-Instar-Conversion-Cache: bypass`` every conversion of the request calls the webhook and none is
cached, which reveals a webhook whose answers vary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from instar.base.errors import BadRequest
from instar.server.http.messages import Request
from instar.server.registry.resources.resource import Target
from instar.wire.conversion.instrumented import ConversionMetrics, request_clock

CACHE_HEADER = b"x-instar-conversion-cache"
_BYPASS = "bypass"


def with_requested_cache(request: Request, target: Target) -> Target:
    """The target, with a codec that bypasses the cache if the request says so."""
    if CACHE_HEADER not in request.headers:
        return target
    wish = request.header(CACHE_HEADER)
    if wish.lower() != _BYPASS:
        name = CACHE_HEADER.decode().title()
        raise BadRequest(f'{name}: "{wish}" is not known; the only value is "{_BYPASS}"')
    return replace(target, codec=target.codec.uncached())


@contextmanager
def count_conversion_wait(metrics: ConversionMetrics, target: Target) -> Iterator[None]:
    """Record how long the request waited for conversions, if it did."""
    with request_clock() as clock:
        try:
            yield
        finally:
            if clock.seconds:
                metrics.request_waited(target.serving.crd.name, clock.seconds)
