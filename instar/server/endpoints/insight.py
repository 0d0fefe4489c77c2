"""Endpoints ``/instar/census`` (objects by stored version), ``usage`` (requests by client and
version), ``access`` (permissions used), ``webhooks`` (calls) and ``migrations``, as JSON.

``server/app.py`` calls it for authorized users. ``instar census`` and ``instar versions`` read
these paths; a cluster that lacks them is not an instar server. ``registry/insight`` collects the
numbers.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from instar.base.json_values import Object
from instar.kube.access.attributes import Attributes
from instar.server.http.messages import Request, Response
from instar.server.registry.insight.access import AccessRecord
from instar.server.registry.insight.census import ServerCensus
from instar.server.registry.insight.encryption_keys import encryption_keys_document
from instar.server.registry.insight.usage import UsageRecorder
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend
from instar.server.rest.responses import json_response
from instar.wire.webhooks.call_log import CallLog
from instar.wire.webhooks.transport import TransportPool

PATHS = {
    "/instar/access": "allowed requests by user, verb and resource, of all users or of "
    "`?user=NAME`: `instar access` makes roles of it",
    "/instar/census": "how many objects of each CRD are stored at which version, and under which "
    "key where encryption at rest is on: `instar census`",
    "/instar/migrations": "how far the migrations are that this process works on: total, left, "
    "rate, failures with reasons",
    "/instar/usage": "requests by client, resource, version and verb, and when the last one was: "
    "`instar versions`",
    "/instar/webhooks": "calls of webhooks, how they ended and how long they took, and the "
    "certificates that were shown",
}
"""Path → description; the API reference in the docs is generated from it."""


class Insight:
    """Serves the ``/instar`` endpoints about the whole server."""

    def __init__(
        self,
        census: ServerCensus,
        usage: UsageRecorder,
        access: AccessRecord,
        backend: Backend,
        calls: CallLog,
        transports: TransportPool,
        migrations: Callable[[], Object],
    ) -> None:
        self._migrations = migrations
        self._access = access
        self._calls = calls
        self._transports = transports
        self._backend = backend
        self._census = census
        self._usage = usage

    def note(self, asked: Attributes, serving: Serving, agent: str) -> None:
        """Count a request for a version of a custom resource, served or not."""
        if not serving.builtin and asked.version in serving.versions:
            self._usage.note(asked, agent)

    async def _counted(self) -> dict[str, Any]:
        seals = await encryption_keys_document(self._backend)
        await self._census.prepare()
        document = self._census.document()
        return document if seals is None else {**document, "encryption": seals}

    def _called(self) -> dict[str, Any]:
        shown = self._transports.certificates()
        return {
            **self._calls.document(),
            "certificates": {
                address: {
                    "subject": _subject(certificate.get("subject") or ()),
                    "notAfter": _moment(str(certificate.get("notAfter") or "")),
                }
                for address, certificate in shown.items()
            },
        }

    async def respond(self, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD"):
            return None
        match request.path:
            case "/instar/census":
                return json_response(200, await self._counted())
            case "/instar/access":
                return json_response(200, self._access.document(request.one("user")))
            case "/instar/usage":
                return json_response(200, self._usage.document())
            case "/instar/migrations":
                return json_response(200, {"migrations": self._migrations()})
            case "/instar/webhooks":
                return json_response(200, self._called())
        return None


def _subject(parts: Iterable[Iterable[tuple[str, str]]]) -> str:
    """A certificate subject such as ``commonName=webhook``, from the form of the ssl module."""
    return ",".join(f"{name}={value}" for part in parts for name, value in part)


def _moment(text: str) -> str | None:
    """``Jan  5 09:34:43 2027 GMT`` as RFC 3339."""
    if not text:
        return None
    shown = datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC).isoformat()
    return shown.replace("+00:00", "Z")
