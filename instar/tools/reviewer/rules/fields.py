"""Review rules about fields that are added, removed, renamed or moved, and about map values.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.tools.reviewer.changes import NodeChange
from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.rule_kit import (
    CLIENTS,
    ERROR,
    INFO,
    READERS,
    STORED,
    WARNING,
    WRITERS,
    FindingDraft,
    NodeCheck,
    ReviewRule,
    keywords,
    show,
)
from instar.tools.reviewer.types import type_name

RULES = (
    ReviewRule(
        "field-removed",
        ERROR,
        "a field is gone from the schema: what is stored there is pruned, what is sent is dropped",
        (STORED, WRITERS, READERS, CLIENTS),
    ),
    ReviewRule(
        "field-renamed",
        ERROR,
        "a field went and a like one came beside it: values do not follow by themselves",
        (STORED, WRITERS, READERS, CLIENTS),
    ),
    ReviewRule(
        "field-moved",
        ERROR,
        "a field went and the same one came elsewhere: values do not follow by themselves",
        (STORED, WRITERS, READERS, CLIENTS),
    ),
    ReviewRule("field-added", INFO, "a new field", (READERS,)),
    ReviewRule(
        "field-constrained",
        ERROR,
        "a new field where any content was kept before: what is there must now fit its schema",
        (STORED, WRITERS),
    ),
    ReviewRule(
        "map-values-removed",
        ERROR,
        "an object no longer takes free keys: they are pruned",
        (STORED, WRITERS, READERS, CLIENTS),
    ),
    ReviewRule("map-values-added", WARNING, "an object takes free keys now", (READERS, CLIENTS)),
)

_MAP = "additionalProperties"


def removed(change: NodeChange) -> Iterator[FindingDraft]:
    """Report a removed field; the engine recognises renames and moves over all changes of a
    version.
    """
    if change.old is None or change.new is not None or not change.is_property:
        return
    kept = change.new_parent.get("x-kubernetes-preserve-unknown-fields")
    kept = kept or _MAP in change.new_parent
    if kept:
        yield FindingDraft(
            rule="field-removed",
            severity=WARNING,
            hits=(CLIENTS, READERS),
            on_old=True,
            message=f"{change.name} left the schema; its parent keeps unknown fields, so the "
            "values stay but nothing checks them any more",
        )
        return
    yield FindingDraft(
        rule="field-removed",
        on_old=True,
        effect=Effect.PRUNED,
        message=f"{change.name} ({type_name(change.old)}) is gone: stored values are pruned "
        "when they are read, new ones are dropped silently",
    )


def added(change: NodeChange) -> Iterator[FindingDraft]:
    if change.new is None or change.old is not None or not change.is_property:
        return
    was_free = (
        change.old_parent.get("x-kubernetes-preserve-unknown-fields") or _MAP in change.old_parent
    )
    if was_free:
        yield FindingDraft(
            rule="field-constrained",
            effect=Effect.REFUSED,
            message=f"{change.name} is in the schema now ({type_name(change.new)}); any content "
            "was kept there before",
        )
        return
    default = change.new.get("default")
    extra = "" if default is None else f", default {show(default)}"
    yield FindingDraft(
        rule="field-added",
        message=f"{change.name} ({type_name(change.new)}{extra}) is new",
    )


def map_values(change: NodeChange) -> Iterator[FindingDraft]:
    """Report that ``additionalProperties`` with a schema was added or removed."""
    if change.name != _MAP or (change.steps[-2:-1] == ("properties",)):
        return
    if change.new is None and change.old is not None:
        yield from _removed_field(change.new_parent.get(_MAP))
    elif change.old is None and change.new is not None and not change.old_parent.get(_MAP):
        yield FindingDraft(
            rule="map-values-added",
            effect=Effect.ACCEPTED,
            message="free keys are kept now; readers may meet keys they do not know",
        )


def _removed_field(now: object) -> Iterator[FindingDraft]:
    if now is True:
        message = "values of free keys are no longer described: their fields are pruned"
    else:
        message = "free keys are no longer kept: existing ones are pruned"
    yield FindingDraft(
        rule="map-values-removed", on_old=True, effect=Effect.PRUNED, message=message
    )


def map_flag(change: NodeChange) -> Iterator[FindingDraft]:
    """Report that ``additionalProperties: true`` was added or removed, without a schema on either
    side.
    """
    if change.old is None or change.new is None or _MAP not in change.keywords:
        return
    old, new = change.old.get(_MAP), change.new.get(_MAP)
    if old is True and not new:
        yield FindingDraft(
            rule="map-values-removed",
            effect=Effect.PRUNED,
            message="free keys are no longer kept: existing ones are pruned",
        )
    elif new is True and not old:
        yield FindingDraft(
            rule="map-values-added",
            effect=Effect.ACCEPTED,
            message="free keys are kept now; readers may meet keys they do not know",
        )


CHECKS = (
    NodeCheck(keywords("properties"), removed),
    NodeCheck(keywords("properties"), added),
    NodeCheck(keywords(_MAP), map_values),
    NodeCheck(keywords(_MAP), map_flag),
)
