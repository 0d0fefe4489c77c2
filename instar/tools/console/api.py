"""Console API (``/console/api/…``): maps paths to views (functions that build the JSON document of
a page), and queries and bodies to their arguments.

Called by ``pages.py``; the views are in ``views/``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from instar.base import offload
from instar.base.errors import BadRequest, MethodNotAllowed, NotFound
from instar.server.http.messages import Request, Response
from instar.tools.console.jobs.supervisor import Jobs
from instar.tools.console.json_body import body_of
from instar.tools.console.local_migrations import LocalMigrations
from instar.tools.console.security_headers import json_answer
from instar.tools.console.views import (
    check,
    convert,
    fields,
    migration,
    objects,
    overview,
    review,
    rules,
    versions,
)
from instar.tools.console.views import webhooks as webhook_view
from instar.tools.console.views.summaries import Summaries
from instar.tools.migrator.versions.version_state import QUIET_DAYS
from instar.wire.client.client import Client
from instar.wire.conversion.factory import ConversionServices

_READS = ("GET", "HEAD")
_MEANINGLESS = frozenset(("", ".", ".."))
_MEDIA = {"html": b"text/html; charset=utf-8", "markdown": b"text/markdown; charset=utf-8"}
_SUFFIX = {"html": b"html", "markdown": b"md"}


class Api:
    """Serves ``/console/api``: each path is a view that is made with the user's own credential."""

    def __init__(
        self,
        services: ConversionServices | None = None,
        local: LocalMigrations | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """``services`` calls conversion webhooks and ``local`` runs migrations, for clusters whose
        server does not do that on request.
        """
        self._local = local
        self._services = services
        self._now = now
        self._summaries = Summaries()
        self._jobs = Jobs()

    async def respond(self, request: Request, path: list[str], client: Client) -> Response:
        """Handle a request of the console's page. Raises ``ApiError``."""
        parts = [unquote(part) for part in path]
        if not _MEANINGLESS.isdisjoint(parts):  # it would mean another path of the cluster
            raise NotFound("the console answers nothing at a path with an empty part", details={})
        if request.method in _READS:
            found = await self._read(request, parts, client)
            if found is not None:
                return json_answer(200, found)
        elif request.method == "POST":
            answer = await self._posted(request, parts, client)
            if answer is not None:
                return answer
        else:
            raise MethodNotAllowed("the console reads by GET and acts by POST", details={})
        raise NotFound(f"the console answers nothing at {'/'.join(parts)[:200]}", details={})

    async def _read(self, request: Request, parts: list[str], client: Client) -> Any:
        match parts:
            case ["overview"]:
                return await overview.overview(client, self._summaries)
            case ["webhooks"]:
                return await webhook_view.webhooks(client, self._summaries, self._now())
            case ["rules"]:
                return await offload.run_in_thread(rules.rules)
            case ["laws"]:
                return check.laws()
            case ["crds", name, "versions"]:
                return await versions.versions(client, name, _days(request))
            case ["crds", name, "fields"]:
                most = _count(request, "most", fields.DEFAULT_OBJECTS)
                return await fields.fields(client, name, most)
            case ["crds", name, "migration"]:
                planned = request.one("plan") != "0"
                return await migration.migration(client, name, self._local, planned=planned)
            case ["crds", crd, "objects", namespace, name]:
                return await objects.object_everywhere(client, crd, namespace, name)
        return None

    async def _posted(self, request: Request, parts: list[str], client: Client) -> Response | None:
        match parts:
            case ["review"]:
                form = request.one("form") or "json"
                report = await review.review(client, self._jobs, body_of(request), form)
                return json_answer(200, report) if form == "json" else _export(report, form)
            case ["convert"]:
                shown = body_of(request)
                return json_answer(
                    200, await convert.convert(client, self._summaries, shown, self._services)
                )
            case ["check"]:
                asked = body_of(request)
                return json_answer(
                    200, await check.check(client, self._jobs, asked, self._services)
                )
            case ["crds", name, "migration", action]:
                body_of(request)
                return json_answer(200, await migration.act(client, name, action, self._local))
            case ["crds", name, "versions", version, step]:
                return await self._step(request, client, name, version, step)
        return None

    async def _step(
        self, request: Request, client: Client, name: str, version: str, step: str
    ) -> Response:
        asked = body_of(request)
        warning = asked.get("warning") or ""
        if not isinstance(warning, str):
            raise BadRequest("warning must be a text")
        dry_run = bool(asked.get("dryRun"))
        await versions.take_step(client, name, version, step, warning=warning, dry_run=dry_run)
        return json_answer(200, await versions.versions(client, name, _days(request)))


def _export(text: str, form: str) -> Response:
    """Return a report as a file download, so that the browser does not render it in our origin."""
    name = b'attachment; filename="review.%b"' % _SUFFIX[form]
    policy = b"default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return Response(
        200,
        (text.encode(),),
        [
            (b"content-type", _MEDIA[form]),
            (b"content-disposition", name),
            (b"content-security-policy", policy),
        ],
    )


def _days(request: Request) -> float:
    text = request.one("quietDays")
    if not text:
        return QUIET_DAYS
    if not text.isascii() or not text.isdecimal() or len(text) > 4:
        raise BadRequest("quietDays must be a number of days")
    return float(text)


def _count(request: Request, name: str, default: int) -> int:
    found = request.integer(name)
    if found < 0:
        raise BadRequest(f"{name} must not be negative")
    return found or default
