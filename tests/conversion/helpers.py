"""A CRD with three versions, its objects, and converters that call a test webhook."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from instar.base.json_values import Object
from instar.kube.api.crd import Crd, read_crd
from instar.wire.conversion.factory import ConversionServices, converter_for
from instar.wire.conversion.failure import ConversionFailed
from instar.wire.webhooks.transport import TransportPool, TransportSettings
from tests.support.crds import crd, version
from tests.support.webhook import Webhook

V1, V2 = "example.com/v1", "example.com/v2"
T = TypeVar("T")


def crd_with(conversion: dict[str, Any], name: str = "widgets.example.com") -> Crd:
    versions = [version("v1", None), version("v2", None), version("v3", None, served=False)]
    made = crd(*versions, plural="widgets", kind="Widget", conversion=conversion)
    made["metadata"] = {"name": name, "uid": "crd-uid", "generation": 1}
    return read_crd(made)


def widget(name: str = "a", api_version: str = V1, **metadata: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", **metadata},
        "spec": {"size": 1},
    }


def widgets(count: int) -> list[Object]:
    return [widget(f"w{number}") for number in range(count)]


def run(scenario: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(scenario)


@asynccontextmanager
async def services(
    transport: TransportSettings | None = None, **parts: Any
) -> AsyncIterator[ConversionServices]:
    made = ConversionServices(transports=TransportPool(transport), **parts)
    try:
        yield made
    finally:
        await made.close()


def convert(
    conversion: dict[str, Any],
    objects: Sequence[Object],
    api_version: str = V2,
    transport: TransportSettings | None = None,
    **parts: Any,
) -> list[Object]:
    """One conversion from start to end, connections and all."""

    async def scenario() -> list[Object]:
        async with services(transport, **parts) as made:
            converter = converter_for(crd_with(conversion), made)
            return await converter.convert(objects, api_version)

    return run(scenario())


def failure(
    hook: Webhook, objects: Sequence[Object] | None = None, **options: Any
) -> ConversionFailed:
    """How converting through ``hook`` fails."""
    try:
        convert(hook.conversion(), objects or [widget()], **options)
    except ConversionFailed as failed:
        return failed
    raise AssertionError("the conversion succeeded")


def causes(failed: ConversionFailed) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for cause in (failed.details or {})["causes"]:
        found.setdefault(cause["reason"], []).append(cause["message"])
    return found
