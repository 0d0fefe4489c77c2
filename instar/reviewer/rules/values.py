"""Which values a field takes: enum, pattern, null, multiples, unique items, required members."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from instar.reviewer.changes import NodeChange
from instar.reviewer.report import Effect
from instar.reviewer.rulekit import (
    CLIENTS,
    ERROR,
    INFO,
    READERS,
    STORED,
    WARNING,
    WRITERS,
    Draft,
    NodeCheck,
    Rule,
    both,
    keywords,
    listed,
    show,
)

RULES = (
    Rule("enum-added", ERROR, "only listed values are taken now", (WRITERS, STORED)),
    Rule("enum-value-removed", ERROR, "a listed value is refused now", (WRITERS, STORED)),
    Rule(
        "enum-value-added",
        WARNING,
        "a new value may appear: code that switches over the old ones is incomplete",
        (READERS, CLIENTS),
    ),
    Rule("enum-removed", WARNING, "any value may appear now", (READERS, CLIENTS)),
    Rule(
        "required-added", ERROR, "a field must be there that could be left out", (WRITERS, STORED)
    ),
    Rule(
        "required-removed",
        WARNING,
        "a field that was always there may be missing",
        (READERS, CLIENTS),
    ),
    Rule("pattern-added", ERROR, "text must match a pattern now", (WRITERS, STORED)),
    Rule("pattern-changed", ERROR, "text must match another pattern", (WRITERS, STORED)),
    Rule("pattern-removed", INFO, "text need not match a pattern any more", (READERS,)),
    Rule("nullable-removed", ERROR, "null is not kept any more", (WRITERS, STORED)),
    Rule("nullable-added", WARNING, "null may appear", (READERS, CLIENTS)),
    Rule("multiple-of-tightened", ERROR, "fewer numbers are taken", (WRITERS, STORED)),
    Rule("multiple-of-loosened", INFO, "more numbers are taken", (READERS,)),
    Rule("unique-items-added", ERROR, "repeated items are refused now", (WRITERS, STORED)),
    Rule("unique-items-removed", INFO, "items may repeat now", (READERS,)),
)


def enum(change: NodeChange) -> Iterator[Draft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (_texts(node.get("enum")) for node in pair)
    if not old and new:
        yield Draft(
            rule="enum-added",
            effect=Effect.REFUSED,
            message=f"only {listed(new.values())} may be written now",
        )
    elif old and not new:
        yield Draft(
            rule="enum-removed",
            effect=Effect.ACCEPTED,
            message=f"no longer limited to {listed(old.values())}",
        )
    else:
        yield from _enum_values(old, new)


def _enum_values(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Draft]:
    gone = [old[text] for text in sorted(set(old) - set(new))]
    came = [new[text] for text in sorted(set(new) - set(old))]
    if gone:
        yield Draft(
            rule="enum-value-removed",
            effect=Effect.REFUSED,
            message=f"{listed(gone)} may no longer be written",
        )
    if came:
        yield Draft(
            rule="enum-value-added",
            effect=Effect.ACCEPTED,
            message=f"{listed(came)} may appear",
        )


def required(change: NodeChange) -> Iterator[Draft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (set(map(str, node.get("required") or ())) for node in pair)
    for name in sorted(new - old):
        yield from _now_required(change, name)
    gone = sorted(old - new)
    # A field that left altogether is said once, by the rule for fields.
    properties = pair[1].get("properties") or {}
    still = [name for name in gone if name in properties]
    if still and all(properties[name].get("default") is not None for name in still):
        yield Draft(
            rule="required-removed",
            severity=INFO,
            key=",".join(still),
            message=f"{', '.join(still)} may be left out now; a default fills it in",
        )
    elif still:
        yield Draft(
            rule="required-removed",
            effect=Effect.ACCEPTED,
            members=tuple(still),
            key=",".join(still),
            message=f"{', '.join(still)} may be missing now",
        )


def _now_required(change: NodeChange, name: str) -> Iterator[Draft]:
    assert change.new is not None
    child = (change.new.get("properties") or {}).get(name) or {}
    default = child.get("default")
    if default is not None:
        yield Draft(
            rule="required-added",
            severity=INFO,
            hits=(READERS,),
            key=name,
            path=name,
            message=f"{name} is required now; its default {show(default)} fills it in",
        )
        return
    yield Draft(
        rule="required-added",
        effect=Effect.REFUSED,
        members=(name,),
        key=name,
        path=name,
        message=f"{name} must be given now and has no default",
    )


def pattern(change: NodeChange) -> Iterator[Draft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (node.get("pattern") for node in pair)
    if old is None:
        yield Draft(rule="pattern-added", effect=Effect.REFUSED, message=f"must match {new} now")
    elif new is None:
        yield Draft(
            rule="pattern-removed",
            effect=Effect.ACCEPTED,
            message=f"need not match {old} any more",
        )
    else:
        yield Draft(
            rule="pattern-changed",
            unsure=True,
            effect=Effect.REFUSED,
            message=f"must match {new}, was {old}",
        )


def nullable(change: NodeChange) -> Iterator[Draft]:
    pair = both(change)
    if pair is None:
        return
    if pair[0].get("nullable"):
        yield Draft(
            rule="nullable-removed",
            effect=Effect.CHANGED,
            message="null is dropped, defaulted or refused now",
        )
    else:
        yield Draft(rule="nullable-added", effect=Effect.CHANGED, message="null may appear")


def multiple_of(change: NodeChange) -> Iterator[Draft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (node.get("multipleOf") for node in pair)
    if new is None or (old is not None and _is_multiple(old, new)):
        yield Draft(
            rule="multiple-of-loosened",
            effect=Effect.ACCEPTED,
            message=f"need not be a multiple of {show(old)} any more"
            if new is None
            else f"multiples of {show(new)} are taken, were of {show(old)}",
        )
        return
    was = "" if old is None else f", was {show(old)}"
    yield Draft(
        rule="multiple-of-tightened",
        effect=Effect.REFUSED,
        message=f"must be a multiple of {show(new)}{was}",
    )


def unique_items(change: NodeChange) -> Iterator[Draft]:
    pair = both(change)
    if pair is None:
        return
    if pair[1].get("uniqueItems"):
        yield Draft(
            rule="unique-items-added", effect=Effect.REFUSED, message="items may not repeat now"
        )
    else:
        yield Draft(
            rule="unique-items-removed", effect=Effect.ACCEPTED, message="items may repeat now"
        )


def _texts(values: Any) -> dict[str, Any]:
    """Enum values by their JSON text, which tells 1 from true and "1"."""
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
