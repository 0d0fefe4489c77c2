"""Review rules about accepted values: enum, pattern, null, multiples, unique items, required
members.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

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
    both,
    keywords,
    list_values,
    show,
)

RULES = (
    ReviewRule("enum-added", ERROR, "only listed values are taken now", (WRITERS, STORED)),
    ReviewRule("enum-value-removed", ERROR, "a listed value is refused now", (WRITERS, STORED)),
    ReviewRule(
        "enum-value-added",
        WARNING,
        "a new value may appear: code that switches over the old ones is incomplete",
        (READERS, CLIENTS),
    ),
    ReviewRule("enum-removed", WARNING, "any value may appear now", (READERS, CLIENTS)),
    ReviewRule(
        "required-added", ERROR, "a field must be there that could be left out", (WRITERS, STORED)
    ),
    ReviewRule(
        "required-removed",
        WARNING,
        "a field that was always there may be missing",
        (READERS, CLIENTS),
    ),
    ReviewRule("pattern-added", ERROR, "text must match a pattern now", (WRITERS, STORED)),
    ReviewRule("pattern-changed", ERROR, "text must match another pattern", (WRITERS, STORED)),
    ReviewRule("pattern-removed", INFO, "text need not match a pattern any more", (READERS,)),
    ReviewRule("nullable-removed", ERROR, "null is not kept any more", (WRITERS, STORED)),
    ReviewRule("nullable-added", WARNING, "null may appear", (READERS, CLIENTS)),
    ReviewRule("multiple-of-tightened", ERROR, "fewer numbers are taken", (WRITERS, STORED)),
    ReviewRule("multiple-of-loosened", INFO, "more numbers are taken", (READERS,)),
    ReviewRule("unique-items-added", ERROR, "repeated items are refused now", (WRITERS, STORED)),
    ReviewRule("unique-items-removed", INFO, "items may repeat now", (READERS,)),
)


def enum(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (_texts(node.get("enum")) for node in pair)
    if not old and new:
        yield FindingDraft(
            rule="enum-added",
            effect=Effect.REFUSED,
            message=f"only {list_values(new.values())} may be written now",
        )
    elif old and not new:
        yield FindingDraft(
            rule="enum-removed",
            effect=Effect.ACCEPTED,
            message=f"no longer limited to {list_values(old.values())}",
        )
    else:
        yield from _enum_values(old, new)


def _enum_values(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FindingDraft]:
    gone = [old[text] for text in sorted(set(old) - set(new))]
    came = [new[text] for text in sorted(set(new) - set(old))]
    if gone:
        yield FindingDraft(
            rule="enum-value-removed",
            effect=Effect.REFUSED,
            message=f"{list_values(gone)} may no longer be written",
        )
    if came:
        yield FindingDraft(
            rule="enum-value-added",
            effect=Effect.ACCEPTED,
            message=f"{list_values(came)} may appear",
        )


def required(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (set(map(str, node.get("required") or ())) for node in pair)
    for name in sorted(new - old):
        yield from _now_required(change, name)
    gone = sorted(old - new)
    # a field that was removed is reported once, by the rule for fields
    properties = pair[1].get("properties") or {}
    still = [name for name in gone if name in properties]
    if still and all(properties[name].get("default") is not None for name in still):
        yield FindingDraft(
            rule="required-removed",
            severity=INFO,
            key=",".join(still),
            message=f"{', '.join(still)} may be left out now; a default fills it in",
        )
    elif still:
        yield FindingDraft(
            rule="required-removed",
            effect=Effect.ACCEPTED,
            members=tuple(still),
            key=",".join(still),
            message=f"{', '.join(still)} may be missing now",
        )


def _now_required(change: NodeChange, name: str) -> Iterator[FindingDraft]:
    assert change.new is not None
    child = (change.new.get("properties") or {}).get(name) or {}
    default = child.get("default")
    if default is not None:
        yield FindingDraft(
            rule="required-added",
            severity=INFO,
            hits=(READERS,),
            key=name,
            path=name,
            message=f"{name} is required now; its default {show(default)} fills it in",
        )
        return
    yield FindingDraft(
        rule="required-added",
        effect=Effect.REFUSED,
        members=(name,),
        key=name,
        path=name,
        message=f"{name} must be given now and has no default",
    )


def pattern(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (node.get("pattern") for node in pair)
    if old is None:
        yield FindingDraft(
            rule="pattern-added", effect=Effect.REFUSED, message=f"must match {new} now"
        )
    elif new is None:
        yield FindingDraft(
            rule="pattern-removed",
            effect=Effect.ACCEPTED,
            message=f"need not match {old} any more",
        )
    else:
        yield FindingDraft(
            rule="pattern-changed",
            unsure=True,
            effect=Effect.REFUSED,
            message=f"must match {new}, was {old}",
        )


def nullable(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    if pair[0].get("nullable"):
        yield FindingDraft(
            rule="nullable-removed",
            effect=Effect.CHANGED,
            message="null is dropped, defaulted or refused now",
        )
    else:
        yield FindingDraft(rule="nullable-added", effect=Effect.CHANGED, message="null may appear")


def multiple_of(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (node.get("multipleOf") for node in pair)
    if new is None or (old is not None and _is_multiple(old, new)):
        yield FindingDraft(
            rule="multiple-of-loosened",
            effect=Effect.ACCEPTED,
            message=f"need not be a multiple of {show(old)} any more"
            if new is None
            else f"multiples of {show(new)} are taken, were of {show(old)}",
        )
        return
    was = "" if old is None else f", was {show(old)}"
    yield FindingDraft(
        rule="multiple-of-tightened",
        effect=Effect.REFUSED,
        message=f"must be a multiple of {show(new)}{was}",
    )


def unique_items(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    if pair[1].get("uniqueItems"):
        yield FindingDraft(
            rule="unique-items-added", effect=Effect.REFUSED, message="items may not repeat now"
        )
    else:
        yield FindingDraft(
            rule="unique-items-removed", effect=Effect.ACCEPTED, message="items may repeat now"
        )


def _texts(values: Any) -> dict[str, Any]:
    """Return enum values by their JSON text, which tells 1 from true and "1"."""
    return {json.dumps(item, sort_keys=True, default=str): item for item in values or ()}


def _is_multiple(value: float, factor: float) -> bool:
    return bool(factor) and float(value / factor).is_integer()


CHECKS = (
    NodeCheck(keywords("enum"), enum),
    NodeCheck(keywords("required"), required),
    NodeCheck(keywords("pattern"), pattern),
    NodeCheck(keywords("nullable"), nullable),
    NodeCheck(keywords("multipleOf"), multiple_of),
    NodeCheck(keywords("uniqueItems"), unique_items),
)
