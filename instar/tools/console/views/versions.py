"""View: a CRD's versions as ``instar versions`` shows them, with the possible next edits.

Called by ``tools/console/api.py``.
"""

from __future__ import annotations

from typing import Any

from instar.base.errors import BadRequest, Conflict
from instar.base.escaping import shell_word
from instar.base.json_values import Object
from instar.kube.api.user_agents import VERSIONS, is_ours
from instar.tools.console.views.quantiles import quantile
from instar.tools.console.views.server_facts import MissingDocuments, read_document
from instar.tools.migrator.versions.crd_edits import EDITS, VersionEdit
from instar.tools.migrator.versions.lifecycle import STEPS, Situation, ago, why_safe
from instar.tools.migrator.versions.version_state import QUIET_DAYS, as_document, situation_of
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

_MOST_USES = 50
_ATTEMPTS = 5
STEPS_HERE = tuple(step for step in STEPS if step != "add")
"""Edits offered here; adding a version needs a file."""


async def versions(client: Client, name: str, quiet_days: float = QUIET_DAYS) -> Object:
    """Return the versions and steps. Raises ``ApiError``."""
    raw = await client.get(crd_path(name))
    unknown = MissingDocuments()
    situation = await situation_of(client, raw, quiet_days=quiet_days)
    webhooks = await read_document(client, "webhooks", unknown)
    if situation.usage.since is None:
        unknown.add("usage", "Requests are not counted on this cluster.")
    document = as_document(situation)
    for version in document["versions"]:
        _detail(version, situation)
    return {
        **document,
        "quietDays": quiet_days,
        "conversions": _conversions(situation, webhooks),
        "unknown": unknown.lines,
    }


def _detail(version: Object, situation: Situation) -> None:
    name, crd = version["name"], situation.crd.name
    uses = [use for use in situation.usage.uses if use.version == name and not is_ours(use.agent)]
    uses.sort(key=lambda use: use.last, reverse=True)
    version["uses"] = [
        {
            "verb": use.verb,
            "user": use.user,
            "userAgent": use.agent,
            "count": use.count,
            "last": use.last.isoformat(),
            "ago": ago(situation.now, use.last),
        }
        for use in uses[:_MOST_USES]
    ]
    for step in version["next"]:
        step["why"] = "" if step["blockedBy"] else why_safe(situation, step["step"], name)
        step["command"] = (
            f"instar versions {shell_word(crd)} {shell_word(step['step'])} {shell_word(name)}"
        )


def _conversions(situation: Situation, webhooks: Object | None) -> list[Object]:
    """Return the statistics of each pair of versions that reads convert between."""
    crd = situation.crd
    if crd.conversion.strategy == "None":
        return [
            {"from": source.name, "to": target.name, "by": "None", **_NOT_COUNTED}
            for source in crd.versions
            for target in crd.versions
            if source.name != target.name
        ]
    listed = (webhooks or {}).get("webhooks") or ()
    called: Object = next(
        (item for item in listed if item["type"] == "conversion" and item["name"] == crd.name), {}
    )
    return [
        {
            "from": item["from"],
            "to": item["to"],
            "by": f"webhook {called['where']}",
            "count": item["calls"],
            "failures": item["failures"],
            "meanSeconds": item["latency"]["sum"] / max(item["calls"], 1),
            "p99Seconds": quantile(item["latency"]["bounds"], item["latency"]["counts"], 0.99),
            "lastFailure": _failure(item["lastFailure"]),
        }
        for item in called.get("directions") or ()
    ]


_NOT_COUNTED: dict[str, Any] = {
    "count": None,
    "failures": 0,
    "meanSeconds": None,
    "p99Seconds": None,
    "lastFailure": None,
}


def _failure(failure: Object | None) -> Object | None:
    return None if failure is None else {"when": failure["at"], "text": failure["text"]}


async def take_step(
    client: Client, name: str, version: str, step: str, *, warning: str = "", dry_run: bool = False
) -> None:
    """Check and make an edit; the write fails if the CRD changed since the check. Raises
    ``Conflict`` with every reason for which ``instar versions`` would refuse.
    """
    if step not in STEPS_HERE:
        raise BadRequest(f"there is no step {step[:50]}; there is {', '.join(STEPS_HERE)}")
    for _ in range(_ATTEMPTS):
        raw = await client.get(crd_path(name))
        removing = version if step == "remove" else ""
        situation = await situation_of(client, raw, removing=removing)
        blocks = STEPS[step](situation, version)
        if blocks:
            raise refused_edit(f"{version} of {name}: {step} is not possible", blocks)
        EDITS[step](raw, VersionEdit(version, warning=warning))
        try:
            await client.put(
                crd_path(name), raw, fieldManager=VERSIONS, dryRun="All" if dry_run else None
            )
            return
        except Conflict:
            continue  # the CRD was changed meanwhile, so check again
    raise Conflict(f"{name} keeps changing concurrently; try again later")


def refused_edit(text: str, reasons: list[str]) -> Conflict:
    """Return the error for an edit with these blocking reasons."""
    causes = [{"reason": "Blocked", "message": reason} for reason in reasons]
    return Conflict(f"{text}: {'; '.join(reasons)}", details={"causes": causes})
