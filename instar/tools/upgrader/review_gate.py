"""Reviews a release's CRD against the cluster's, with a sample of real objects.

``cli/commands/upgrade.py`` passes it to ``upgrade.py``, which calls it before anything is applied.
"""

from __future__ import annotations

from dataclasses import replace

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.kube.api.crd_codec import CrdDecodeError
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.reviewer.config import Config
from instar.tools.reviewer.engine import ReviewOptions
from instar.tools.reviewer.report import (
    CrdReview,
    Finding,
    Problem,
    Report,
    Severity,
    sort_findings,
)
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.reviewing import review_crd
from instar.tools.upgrader.transition_crds import bridge
from instar.wire.client.client import Client

HANDLED = {"stored-version-removed": Severity.INFO}
"""Findings that an upgrade resolves: it migrates objects before their version is removed."""
_STORED_OBJECTS_RULE = "stored-objects-break"


async def sample(client: Client, live: Object, most: int) -> list[Object]:
    """Return some real objects; none if they cannot be read now, which the migration
    reports later.
    """
    crd = read_live_crd(live)
    if most <= 0 or not crd.crd.served():
        return []
    try:
        page = await client.list(crd.path(crd.write_version), limit=most)
    except ApiError:
        return []
    frame = {"apiVersion": page.get("apiVersion"), "kind": crd.crd.names.kind}
    return [{**frame, **item} for item in page.get("items") or ()]


def review_release(
    old: Object | None, new: Object, objects: list[Object], config: Config
) -> Report:
    """Review against the cluster's CRD including its status, so that its storedVersions count."""
    # A dry run lets the server itself decide.
    options = ReviewOptions(severities={**HANDLED, **config.severities}, ask_server=False)
    try:
        past = None if old is None else read_reviewed_crd(old)
        found = review_crd(past, read_reviewed_crd(new), options)
        if old is not None and objects:
            found = replace(found, findings=_with_objects(found, old, new, objects, options))
    except CrdDecodeError as error:
        return Report(problems=(Problem(f"not a usable CRD: {error}"),))
    return Report(crds=(found,))


def _with_objects(
    found: CrdReview, old: Object, new: Object, objects: list[Object], options: ReviewOptions
) -> tuple[Finding, ...]:
    """Add findings about objects under the transitional CRD, because they are rewritten
    under it.
    """
    tried = review_crd(
        read_reviewed_crd(old),
        read_reviewed_crd(bridge(new, old)),
        options,
        witnesses=False,
        objects=objects,
    )
    broken = [item for item in tried.findings if item.rule == _STORED_OBJECTS_RULE]
    return sort_findings([*found.findings, *broken])
