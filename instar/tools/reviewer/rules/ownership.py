"""Review rules about list types, list map keys and map types: how server-side apply merges.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.tools.reviewer.changes import NodeChange
from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.rule_kit import (
    APPLIERS,
    ERROR,
    STORED,
    WARNING,
    WRITERS,
    FindingDraft,
    NodeCheck,
    ReviewRule,
    both,
    keywords,
)

RULES = (
    ReviewRule(
        "list-type-changed",
        ERROR,
        "appliers own other parts of the list than before; set and map lists refuse duplicates",
        (APPLIERS, WRITERS, STORED),
    ),
    ReviewRule(
        "list-map-keys-changed",
        ERROR,
        "items of a list are told apart by other keys",
        (APPLIERS, WRITERS, STORED),
    ),
    ReviewRule(
        "map-type-changed",
        WARNING,
        "appliers own the object as a whole instead of its fields, or the other way round",
        (APPLIERS,),
    ),
)

_LIST, _KEYS, _MAP = (
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
_OWNERSHIP = "field ownership shows only in managedFields, not in an object"


def list_type(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None or _LIST not in change.keywords:
        return
    old, new = (str(node.get(_LIST) or "atomic") for node in pair)
    refuses = new != "atomic"
    yield FindingDraft(
        rule="list-type-changed",
        message=f"list type {old} became {new}",
        effect=Effect.REFUSED if refuses else None,
        hits=None if refuses else (APPLIERS,),
        why_no_witness="" if refuses else _OWNERSHIP,
    )


def list_map_keys(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None or _KEYS not in change.keywords or _LIST in change.keywords:
        return
    old, new = (", ".join(node.get(_KEYS) or ()) or "nothing" for node in pair)
    yield FindingDraft(
        rule="list-map-keys-changed",
        message=f"items are told apart by {new}, were by {old}",
        effect=Effect.REFUSED,
    )


def map_type(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (str(node.get(_MAP) or "granular") for node in pair)
    yield FindingDraft(
        rule="map-type-changed",
        message=f"map type {old} became {new}",
        why_no_witness=_OWNERSHIP,
    )


CHECKS = (
    NodeCheck(keywords(_LIST, _KEYS), list_type),
    NodeCheck(keywords(_KEYS), list_map_keys),
    NodeCheck(keywords(_MAP), map_type),
)
