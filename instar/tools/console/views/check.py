"""View: runs ``instar check`` (properties that every conversion must have, called laws) for a
limited time against the cluster's converter.

Called by ``tools/console/api.py``.
"""

from __future__ import annotations

from typing import Any

from instar.base.errors import BadRequest
from instar.base.json_values import Object
from instar.kube.api.crd import read_crd
from instar.tools.console.jobs.supervisor import Jobs
from instar.tools.console.views.conversion_client import conversion_of
from instar.tools.console.views.own_identity import user_name
from instar.tools.sdk.checking.laws import LAWS
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path
from instar.wire.conversion.factory import ConversionServices

DEFAULT_EXAMPLES, MOST_EXAMPLES = 100, 1_000
DEFAULT_SECONDS, MOST_SECONDS = 20.0, 50.0


def laws() -> Object:
    """Return the laws for the page."""
    return {"laws": [{"name": law.name, "title": law.title} for law in LAWS]}


async def check(
    client: Client, jobs: Jobs, asked: Object, services: ConversionServices | None
) -> Object:
    """Return the JSON of ``instar check`` within the time limit. Raises ``ApiError``."""
    name = asked.get("crd")
    if not isinstance(name, str) or not name:
        raise BadRequest('which CRD? send {"crd": "widgets.example.com"}')
    raw = await client.get(crd_path(name))
    crd = read_crd(raw)
    conversion = await conversion_of(client, crd, "", services)

    async def answer(question: Object) -> Object:
        return {"objects": await conversion.convert(question["objects"], str(question["to"]))}

    seed = _number(asked, "seed", None, 2**32 - 1)
    work = {
        "crd": raw,
        "by": conversion.by,
        "laws": _texts(asked, "laws"),
        "versions": _texts(asked, "versions"),
        "examples": _number(asked, "examples", DEFAULT_EXAMPLES, MOST_EXAMPLES) or 1,
        "seed": seed,
    }
    seconds = float(_number(asked, "seconds", int(DEFAULT_SECONDS), int(MOST_SECONDS)) or 1)
    user = await user_name(client)
    outcome = await jobs.run("check", work, user=user, seconds=seconds, answer=answer)
    if outcome.complete:
        return {**outcome.result, "complete": True}
    broken = any(item["verdict"] == "broken" for item in outcome.notes)
    return {
        "crd": name,
        "converter": conversion.by,
        "seed": seed,
        "exitCode": 1 if broken else 2,
        "losses": [],
        "checks": outcome.notes,
        "complete": False,
    }


def _texts(asked: Object, name: str) -> list[str]:
    found: Any = asked.get(name) or []
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise BadRequest(f"{name} must be a list of names")
    return found


def _number(asked: Object, name: str, default: int | None, most: int) -> int | None:
    found = asked.get(name)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= most:
        raise BadRequest(f"{name} must be a number from 0 to {most}")
    return int(found)
