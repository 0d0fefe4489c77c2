"""View: review of a CRD change, from uploaded texts, CRDs of the cluster, or one of each.

Called by ``tools/console/api.py``.
"""

from __future__ import annotations

from typing import Any

from instar.base.errors import ApiError, BadRequest, NotFound, Timeout
from instar.base.json_values import Object
from instar.kube.api.crd import is_crd
from instar.tools.console.jobs.supervisor import Jobs
from instar.tools.console.views.own_identity import user_name
from instar.tools.migrator.live_crd import read_live_crd
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

FORMS = ("json", "html", "markdown")
SECONDS = 30.0
"""Time limit of a review."""
MOST_OBJECTS = 5_000
_PAGE = 250


async def review(client: Client, jobs: Jobs, asked: Object, form: str) -> Any:
    """Return the report as JSON, or as text in another form. Raises ``ApiError``."""
    if form not in FORMS:
        raise BadRequest(f"there is no form {form[:50]}; there is {', '.join(FORMS)}")
    old = None if asked.get("old") is None else await _side(client, asked["old"], "old")
    new = await _side(client, asked.get("new"), "new")
    objects = await _objects(client, asked.get("old") or asked["new"], asked)
    work = {
        "old": old,
        "new": new,
        "objects": objects,
        "witnesses": asked.get("witnesses", True) is not False,
        "form": form,
    }
    outcome = await jobs.run("review", work, user=await user_name(client), seconds=SECONDS)
    if not outcome.complete:
        raise Timeout(f"the review was not finished within {SECONDS:.0f} s; try without witnesses")
    return outcome.result


async def _side(client: Client, side: Any, which: str) -> Object:
    match side:
        case {"crd": str(name)}:
            return {"document": await client.get(crd_path(name)), "name": name}
        case {"text": str(text)}:
            return {"text": text, "name": f"{which}.yaml"}
        case {"object": dict(document)}:
            called = (document.get("metadata") or {}).get("name")
            if not is_crd(document) or not isinstance(called, str):
                raise BadRequest(f"{which} is not a CustomResourceDefinition")
            return {"document": document, "name": called}
    raise BadRequest(f'{which} must be {{"crd": …}}, {{"text": …}} or {{"object": …}}')


async def _objects(client: Client, side: Object, asked: Object) -> list[Object]:
    """Return a bounded number of the cluster's stored objects, as far as readable."""
    name = side.get("crd")
    if not asked.get("objects"):
        return []
    if not isinstance(name, str):
        raise BadRequest("stored objects can be tried where old is a CRD of the cluster")
    live = read_live_crd(await client.get(crd_path(name)))
    found: list[Object] = []
    trouble: ApiError = NotFound(f"no version of {name} is served", details={})
    for version in live.read_versions if live.crd.served() else ():
        try:
            async for page in client.pages(live.path(version), limit=_PAGE):
                head = {"apiVersion": page.get("apiVersion"), "kind": live.crd.names.kind}
                found += [{**head, **item} for item in page.get("items") or ()]
                if len(found) >= MOST_OBJECTS:
                    break
            return found[:MOST_OBJECTS]
        except ApiError as error:
            trouble, found = error, []
    raise trouble
