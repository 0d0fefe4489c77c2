"""View: every configured conversion and admission webhook with its call statistics.

Called by ``tools/console/api.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from typing import Any

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.tools.console.views import certificates
from instar.tools.console.views.quantiles import quantile
from instar.tools.console.views.server_facts import MissingDocuments, read_document
from instar.tools.console.views.summaries import Summaries, service_text
from instar.wire.client.client import Client
from instar.wire.client.paths import resource_path
from instar.wire.webhooks.transport import DEFAULT_TIMEOUT

_ADMISSION = "admissionregistration.k8s.io"
_KINDS = {
    "mutating": "mutatingwebhookconfigurations",
    "validating": "validatingwebhookconfigurations",
}
_LATELY = timedelta(minutes=10)
_PAGE = 25


async def webhooks(client: Client, summaries: Summaries, now: datetime) -> Object:
    """Return the webhooks. Raises ``ApiError`` if CRDs cannot be listed."""
    unknown = MissingDocuments()
    record = await read_document(client, "webhooks", unknown)
    calls = {
        (item["type"], item["configuration"], item["name"]): item
        for item in (record or {}).get("webhooks") or ()
    }
    shown = (record or {}).get("certificates") or {}
    found = [line async for line in _configured(client, summaries, unknown)]
    for line in found:
        bundle = line.pop("bundle")
        key = (line["type"], line["configuration"] or "", line["name"])
        call = calls.get(key)
        line |= _done(call, known=record is not None)
        where = (call or {}).get("where") or ""
        line["certificates"] = certificates.in_bundle(bundle, now) if bundle else []
        if where in shown:
            showed = shown[where]
            line["certificates"].append(
                certificates.certificate_line(showed["subject"], showed["notAfter"], now)
            )
        line["health"], line["why"] = health(line, now)
    return {
        "webhooks": found,
        "since": None if record is None else record["since"],
        "unknown": unknown.lines,
    }


async def _configured(
    client: Client, summaries: Summaries, unknown: MissingDocuments
) -> AsyncIterator[Object]:
    for crd in await summaries.all(client):
        if crd["webhook"] is not None:
            yield _of_crd(crd)
    for type, plural in _KINDS.items():
        try:
            async for page in client.pages(resource_path(_ADMISSION, "v1", plural), limit=_PAGE):
                for configuration in page.get("items") or ():
                    for line in _of_configuration(type, configuration):
                        yield line
        except ApiError as error:
            unknown.add(plural, error.message)


def _of_crd(crd: Object) -> Object:
    return {
        "id": f"conversion/{crd['name']}",
        "type": "conversion",
        "name": crd["name"],
        "crd": crd["name"],
        "configuration": None,
        "failurePolicy": None,
        "timeoutSeconds": int(DEFAULT_TIMEOUT),
        **crd["webhook"],
    }


def _of_configuration(type: str, configuration: Object) -> Iterator[Object]:
    name = str(configuration["metadata"]["name"])
    for webhook in configuration.get("webhooks") or ():
        client: dict[str, Any] = webhook.get("clientConfig") or {}
        where = str(client.get("url") or "")
        service = client.get("service")
        if service:
            where = service_text(
                str(service.get("namespace")),
                str(service.get("name")),
                int(service.get("port") or 443),
                str(service.get("path") or "/"),
            )
        yield {
            "id": f"{type}/{name}/{webhook['name']}",
            "type": type,
            "name": str(webhook["name"]),
            "crd": None,
            "configuration": name,
            "where": where,
            "failurePolicy": webhook.get("failurePolicy"),
            "timeoutSeconds": webhook.get("timeoutSeconds"),
            "bundle": str(client.get("caBundle") or ""),
        }


def _done(call: Object | None, *, known: bool) -> Object:
    """Return the statistics; ``known``: whether the server records calls."""
    if call is None:
        count = 0 if known else None
        return {
            "calls": count,
            "failures": count,
            "rejected": count,
            "lastCall": None,
            "lastFailed": False,
            "latency": None,
            "minutes": [],
            "recentFailures": [],
        }
    latency = call["latency"]
    quantiles = {
        f"p{part}": quantile(latency["bounds"], latency["counts"], part / 100)
        for part in (50, 95, 99)
    }
    kept = ("calls", "failures", "rejected", "lastCall", "lastFailed", "minutes", "recentFailures")
    return {**{name: call[name] for name in kept}, "latency": {**latency, **quantiles}}


def health(line: Object, now: datetime) -> tuple[str, str]:
    """Return a one-word status, and the reason if it is not ``ok``."""
    ended = [item for item in line["certificates"] if item["ended"]]
    if ended:
        return "expired", f"{ended[0]['what']}: {ended[0]['problem']}"
    failures = line["recentFailures"]
    if line["calls"] is None:
        return "unknown", ""
    if not line["calls"]:
        return "idle", "Not called since the server started."
    if line["lastFailed"] and failures:
        return "failing", "The last call failed."
    if failures and now - datetime.fromisoformat(failures[0]["at"]) < _LATELY:
        return "degraded", "Calls failed in the last ten minutes."
    return "ok", ""
