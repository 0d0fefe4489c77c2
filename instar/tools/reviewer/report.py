"""The result of a review: findings with evidence, grouped by CRD, in one sorted, frozen
``Report``.

``reviewing.py`` makes it; every renderer reads it. ``rules/`` decides what is breaking,
``sources.py`` reads files, ``render/`` has the output formats.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import FieldError
from instar.base.json_values import Object, Pointer

_TOKEN = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    OFF = "off"

    @property
    def rank(self) -> int:
        """Smaller is worse."""
        return list(Severity).index(self)


class Hit(StrEnum):
    """The kind of client that notices a change."""

    WRITERS = "writers"
    READERS = "readers"
    STORED = "stored objects"
    APPLIERS = "appliers"
    CLIENTS = "generated clients"


class NoWitness(StrEnum):
    """Why the search found no witness; the value is the text for users."""

    NO_CANDIDATE = "searched: no value was found that only one side takes"
    """The only reason that is evidence itself."""
    NO_OBJECT = "a value was found, but no whole object around it that one side takes"
    NO_TIME = "not searched: the time for witnesses of this CRD was used up"
    NO_RULES = "CEL rules were not run"
    NO_OLD_CRD = "there is no old CRD to compare with"
    NO_STATUS = "the schema has no status"
    NOT_WRITABLE = "no client can write an object of a version that is not served"


class Effect(StrEnum):
    """Effect of the new CRD on a witness that the old one accepted (for ACCEPTED: refused)."""

    REFUSED = "refused"
    PRUNED = "pruned"
    CHANGED = "changed"
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class ObjectVerdict:
    """Result of creating an object on a server with one of the CRDs."""

    accepted: bool
    errors: tuple[FieldError | str, ...] = ()
    """The errors; a plain text is a refusal that names no place in the object."""
    pruned: tuple[str, ...] = ()
    result: Object | None = None
    """The object as it would be served, if it was accepted."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the distinct error texts."""
        return tuple(dict.fromkeys(map(str, self.errors)))

    def says(self) -> str:
        drops = f"drops {', '.join(self.pruned)}" if self.pruned else ""
        if not self.accepted:
            return "; ".join(filter(None, ("refused: " + "; ".join(self.texts), drops)))
        return f"accepted, {drops}" if drops else "accepted"


@dataclass(frozen=True, slots=True)
class Witness:
    """An object that proves a finding; both verdicts came from running the schemas."""

    effect: Effect
    version: str
    object: Object
    old: ObjectVerdict
    new: ObjectVerdict
    new_version: str = ""
    """Set if the second verdict is about another version of the same CRD."""
    through_status: bool = False
    """Whether the status is written to ``/status``, after the rest of the object."""
    before: Object | None = None
    """For rules about updates: the object before the write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One result of a review: rule, severity, place, and what is affected."""

    rule: str
    severity: Severity
    crd: str
    message: str
    version: str = ""
    path: str = ""
    """The field as users write it: ``spec.ports[*].name``."""
    pointer: Pointer = ()
    on_old: bool = False
    """Whether the pointer leads into the old CRD, because something is gone."""
    file: str = ""
    line: int = 0
    hits: tuple[Hit, ...] = ()
    details: str = ""
    witness: Witness | None = None
    unwitnessed: str = ""
    """Why there is no witness, where one was expected."""
    key: str = ""
    """Tells apart two findings of one rule at one place."""
    suppressed: str = ""
    """The reason, if a suppression or the baseline hides it."""

    @property
    def fingerprint(self) -> str:
        """Return a hash that is stable over releases and wording, for baselines and code
        scanners.
        """
        text = "\0".join((self.rule, self.crd, self.version, self.path, self.key))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def order(self) -> tuple[object, ...]:
        return (self.severity.rank, self.version, self.path, self.rule, self.key, self.message)


class PlanRelease(StrEnum):
    """The release in which a step of a plan is due, in chronological order."""

    FIRST = "before anything else"
    N = "N"
    N1 = "N+1"
    N2 = "N+2"
    N3 = "N+3"
    N4 = "N+4"

    @property
    def rank(self) -> int:
        return list(PlanRelease).index(self)

    @property
    def label(self) -> str:
        """Return how reports name it."""
        return "First" if self is PlanRelease.FIRST else f"Release {self}"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a migration plan."""

    release: PlanRelease
    title: str
    why: str = ""
    preconditions: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    rollback: str = ""
    rewrites: bool = False
    """Whether every stored object is at the new storage version afterwards."""


@dataclass(frozen=True, slots=True)
class ChecklistAnswer:
    """One question of the review checklist."""

    question: str
    yes: bool
    evidence: str


class Damage(StrEnum):
    """Damage of a change to a stored object, worst first; ``stored.py`` defines each value."""

    UNREADABLE = "unreadable"
    PRUNED = "pruned"
    INVALID = "invalid"
    OWNERSHIP_LOST = "ownership lost"
    """Only seen when objects are really written, in a rehearsal."""
    FROZEN = "frozen"
    CHANGED = "changed"

    @property
    def rank(self) -> int:
        """Smaller is worse."""
        return list(Damage).index(self)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One real object and its damage."""

    name: str
    version: str
    damage: Damage
    """Its worst damage."""
    reasons: tuple[str, ...]

    @property
    def breaks(self) -> bool:
        """Return whether data is lost; a different reading is no loss."""
        return self.damage is not Damage.CHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class CrdReview:
    """The review of one CRD."""

    name: str
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    plan: tuple[PlanStep, ...] = ()
    checklist: tuple[ChecklistAnswer, ...] = ()
    stored: tuple[StoredObject, ...] = ()
    stored_count: int = 0
    label: str = ""
    """Which commit of a history this is."""

    def worst(self) -> Severity:
        return min((item.severity for item in self.findings), key=_rank, default=Severity.OFF)


@dataclass(frozen=True, slots=True)
class Problem:
    """Input that could not be reviewed."""

    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return f"{place}: {self.message}" if place else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The review of any number of CRDs."""

    crds: tuple[CrdReview, ...] = ()
    only_old: tuple[str, ...] = ()
    only_new: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(item for crd in self.crds for item in crd.findings)

    def count(self, severity: Severity) -> int:
        return sum(item.severity is severity for item in self.findings)

    def exit_code(self, fail_on: Severity | None = Severity.ERROR) -> int:
        """Return 2 for unusable input, 1 for findings at or above ``fail_on`` (None: never),
        else 0.
        """
        if self.problems:
            return 2
        if fail_on is None:
            return 0
        return int(any(item.severity.rank <= fail_on.rank for item in self.findings))

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)


def pointer_of(path: str) -> Pointer:
    """Return the JSON pointer of a path with dots and brackets; keys with dots end it early."""
    found: list[str | int] = []
    for name, position in _TOKEN.findall(path):
        found.append(int(position) if position else name)
    return tuple(found)


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in the order of reports."""
    return tuple(sorted(findings, key=Finding.order))


def _rank(severity: Severity) -> int:
    return severity.rank
