"""Read-only mode: which requests would write, and how they are refused.

``server/app.py`` calls it for a server started with ``--read-only``.
"""

from __future__ import annotations

from instar.base.errors import Forbidden, forbidden
from instar.server.http.messages import Request
from instar.server.registry.resources.resource import Target

_READS = ("get", "list", "watch")
_WHY = "this server is read-only: nothing can be written, except as a dry run"


def refusal(request: Request, target: Target) -> Forbidden | None:
    """None for requests that write nothing: reads, access reviews, dry runs."""
    asked, serving = request.asked, target.serving
    if asked.verb in _READS or serving.verbs == ("create",) or "All" in _dry_run(request):
        return None
    return forbidden(serving.group, serving.plural, asked.name, _WHY)


def _dry_run(request: Request) -> list[str]:
    return request.query.get("dryRun") or []
