"""What instar knows beyond the Kubernetes API: ``/instar/census``, ``/instar/usage`` and
``/instar/access``.

Read-only JSON for whoever is known to the server; ``instar census`` and ``instar versions`` read
it, and take its absence for "this is another server".
"""

from __future__ import annotations

from typing import Any

from instar.access.attributes import Attributes
from instar.registry.insight.access import AccessRecord
from instar.registry.insight.census import Census
from instar.registry.insight.seals import seals_document
from instar.registry.insight.usage import Usage
from instar.registry.resources.serving import Serving
from instar.registry.stored.backend import Backend
from instar.server.rest.request import Request
from instar.server.rest.responses import Response, json_response

PATHS = {
    "/instar/access": "what was asked for and by whom, of every user or of `?user=NAME`: "
    "`instar access` makes roles of it",
    "/instar/census": "how many objects of each CRD are stored at which version, and under which "
    "key where encryption at rest is on: `instar census`",
    "/instar/usage": "who used which version of which resource with which verb, and when last: "
    "`instar versions`",
}
"""Path → what is there. The reference on the site is made from it."""


class Insight:
    def __init__(
        self, census: Census, usage: Usage, access: AccessRecord, backend: Backend
    ) -> None:
        self._access = access
        self._backend = backend
        self._census = census
        self._usage = usage

    def note(self, asked: Attributes, serving: Serving, agent: str) -> None:
        """Count a request for a version of a custom resource, served or not."""
        if not serving.builtin and asked.version in serving.versions:
            self._usage.note(asked, agent)

    def _counted(self) -> dict[str, Any]:
        document, seals = self._census.document(), seals_document(self._backend)
        return document if seals is None else {**document, "encryption": seals}

    def respond(self, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD"):
            return None
        match request.path:
            case "/instar/census":
                return json_response(200, self._counted())
            case "/instar/access":
                return json_response(200, self._access.document(request.one("user")))
            case "/instar/usage":
                return json_response(200, self._usage.document())
        return None
