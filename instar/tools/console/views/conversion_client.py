"""Converts objects with a CRD's real converter: through an instar server, or by calling the
webhook.

Used by the convert and check views. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import orjson

from instar.base.errors import ApiError, BadRequest, Forbidden, NotFound
from instar.base.json_values import Object
from instar.kube.api.crd import Crd, ServiceReference
from instar.wire.client.client import Client
from instar.wire.client.paths import resource_path
from instar.wire.conversion.converter import VersionConverter
from instar.wire.conversion.factory import ConversionServices, converter_for
from instar.wire.conversion.webhook import WebhookConverter
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.transport import webhook_address


class ConversionClient(Protocol):
    by: str
    """Name of the converter, for display."""

    async def convert(self, objects: Sequence[Object], version: str) -> list[Object]:
        """Convert objects. Raises ``ApiError``."""
        ...


def failure_text(crd: Crd) -> str:
    """Return the converter that a failure is blamed on: the strategy or the webhook's address."""
    client = crd.conversion.client
    if crd.conversion.strategy != "Webhook" or client is None:
        return crd.conversion.strategy
    return f"webhook {webhook_address(client)}"


class ServerConversion:
    """Converts through the conversion endpoint of an instar server."""

    def __init__(self, client: Client, crd: Crd, namespace: str) -> None:
        self.by = failure_text(crd)
        self._client = client
        self._path = f"/instar/convert/{crd.group}/{crd.names.plural}"
        self._namespace = namespace

    async def convert(self, objects: Sequence[Object], version: str) -> list[Object]:
        body = {"objects": list(objects), "version": version}
        answer = await self._client.post(self._path, body, namespace=self._namespace or None)
        converted: list[Object] = answer["objects"]
        return converted


class DirectConversion:
    """Calls the webhook as the cluster's server would: a URL directly, a service through the API's
    proxy, for which the visitor needs permission."""

    def __init__(self, client: Client, crd: Crd, services: ConversionServices) -> None:
        self.by = failure_text(crd)
        self._crd = crd
        self._converter = _converter(client, crd, services)

    async def convert(self, objects: Sequence[Object], version: str) -> list[Object]:
        return await self._converter.convert(objects, f"{self._crd.group}/{version}")


def _converter(client: Client, crd: Crd, services: ConversionServices) -> VersionConverter:
    webhook = crd.conversion.client
    service = None if webhook is None else webhook.service
    if crd.conversion.strategy == "Webhook" and service is not None:
        return WebhookConverter(crd, ServiceProxyTransport(client, service), limits=services.limits)
    try:
        return converter_for(crd, services)
    except ValueError as error:
        raise BadRequest(str(error)) from None


class ServiceProxyTransport:
    """A ``Transport`` to a service by way of ``services/proxy``."""

    def __init__(self, client: Client, service: ServiceReference) -> None:
        self._client = client
        name = f"https:{service.name}:{service.port}"
        base = resource_path(
            "", "v1", "services", namespace=service.namespace, name=name, subresource="proxy"
        )
        self.address = base + (service.path if service.path.startswith("/") else "/")

    async def post(self, body: bytes, *, seconds: float) -> bytes:
        try:
            answer = await self._client.post(self.address, orjson.loads(body))
        except ApiError as error:
            raise CallFailed(error.message, unreachable=True) from error
        return orjson.dumps(answer)


async def conversion_of(
    client: Client, crd: Crd, namespace: str, services: ConversionServices | None
) -> ConversionClient:
    """Return the client for a CRD. ``services`` calls webhooks of clusters without the conversion
    endpoint; None inside an instar server. Raises ``Forbidden``.
    """
    by_server = ServerConversion(client, crd, namespace)
    try:
        # tests whether it is offered and allowed
        await by_server.convert([], crd.storage_version())
    except (NotFound, Forbidden):
        if services is None:
            raise
        return DirectConversion(client, crd, services)
    return by_server
