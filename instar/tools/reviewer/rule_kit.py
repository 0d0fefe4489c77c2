"""Types of review rules: a ``ReviewRule`` is the description of a rule, a check is the function
that finds the changes that the rule is about.

``rules/`` uses them and ``engine.py`` runs the checks. Checks are pure and declare the keywords
they cover, so that the engine can report changes that no check covers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Pointer
from instar.tools.reviewer.changes import NodeChange, Steps
from instar.tools.reviewer.report import Effect, Hit, Severity
from instar.tools.reviewer.reviewed_crd import ReviewedCrd

WRITERS, READERS, STORED, APPLIERS, CLIENTS = Hit
ERROR, WARNING, INFO, OFF = Severity


@dataclass(frozen=True, slots=True)
class ReviewRule:
    """``id`` is also the heading in docs/reference/rules.md."""

    id: str
    severity: Severity
    summary: str
    hits: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """Where to search for a witness, and which effect it must show. ``version`` and ``target`` are
    the versions the object is written at and checked at.
    """

    effect: Effect
    version: str = ""
    steps: Steps = ()
    keywords: frozenset[str] = frozenset()
    target: str = ""
    expression: str = ""
    """For CEL: the rule that must fail."""
    members: tuple[str, ...] = ()
    """For ``required``: the fields that were added or removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingDraft:
    """A finding before the engine adds location, severity and evidence."""

    rule: str
    message: str
    version: str = ""
    path: str = ""
    pointer: Pointer = ()
    on_old: bool = False
    """Whether the pointer leads into the old CRD, because something is gone."""
    key: str = ""
    severity: Severity | None = None
    hits: tuple[Hit, ...] | None = None
    details: str = ""
    effect: Effect | None = None
    """What a witness must show; the engine makes a probe of it."""
    expression: str = ""
    members: tuple[str, ...] = ()
    probe: Probe | None = None
    unsure: bool = False
    """Whether the check is uncertain: without a witness the finding weighs less."""
    why_no_witness: str = ""


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """Check of one changed node of the same version."""

    keywords: frozenset[str]
    run: Callable[[NodeChange], Iterable[FindingDraft]]


@dataclass(frozen=True, slots=True)
class CrdCheck:
    """Check that compares two whole CRDs; ``claims`` are the parts of ``spec`` it covers."""

    claims: tuple[str, ...]
    run: Callable[[ReviewedCrd, ReviewedCrd], Iterable[FindingDraft]]


Lint = Callable[[ReviewedCrd], Iterable[FindingDraft]]
"""Check of one CRD alone; on a pair, what the old one already had is left out."""


def keywords(*names: str) -> frozenset[str]:
    return frozenset(names)


def show(value: Any) -> str:
    """Return a JSON value in short form, for a message."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def list_values(values: Iterable[Any]) -> str:
    return ", ".join(show(item) for item in values)


def both(change: NodeChange) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the old and the new node if both exist."""
    if change.old is None or change.new is None:
        return None
    return change.old, change.new
