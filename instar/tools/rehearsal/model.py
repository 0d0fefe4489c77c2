"""Results of a rehearsal: a verdict per step, per client and per object. Plain values.

Batches produce them, ``run.py`` merges them (``absorb``), ``render/`` prints them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum
from typing import NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.reviewer.report import Damage

MOST_EXAMPLES = 5
"""Objects shown per damage and step; the others are counted."""
MOST_EVIDENCE = 3
"""Reasons that are kept per verdict; further ones are dropped."""


class ClientStanding(StrEnum):
    """Verdict on a client after a step, best first."""

    UNAFFECTED = "unaffected"
    WARNED = "warned"
    UNKNOWN = "unknown"
    BROKEN = "broken"

    @property
    def rank(self) -> int:
        """Larger is worse."""
        return list(ClientStanding).index(self)


class Exchange(NamedTuple):
    """One request to the copy and its response."""

    request: str
    object: str
    """``namespace/name``; empty for a collection."""
    answer: str
    before: str = ""
    """The response of the state before the release."""


class DamageFact(NamedTuple):
    """One kind of damage to one object at one version."""

    key: str
    version: str
    damage: Damage
    text: str
    exchange: Exchange | None = None
    diff: tuple[str, ...] = ()
    """Diff from the reading before to the one now."""


@dataclass
class ObjectDamage:
    """Damage to one object, with evidence."""

    key: str
    version: str
    damage: Damage
    reasons: list[str]
    exchange: Exchange | None = None
    diff: tuple[str, ...] = ()


@dataclass
class Damages:
    """Objects counted by their worst damage, with a few examples."""

    counts: Counter[Damage] = field(default_factory=Counter)
    examples: list[ObjectDamage] = field(default_factory=list)

    @classmethod
    def of(cls, harms: Iterable[DamageFact]) -> Damages:
        by_key: dict[str, list[DamageFact]] = {}
        for harm in harms:
            by_key.setdefault(harm.key, []).append(harm)
        found = cls()
        for key, mine in by_key.items():
            mine.sort(key=lambda harm: harm.damage.rank)
            worst = mine[0]
            found.counts[worst.damage] += 1
            shown = sum(one.damage is worst.damage for one in found.examples)
            if shown < MOST_EXAMPLES:
                reasons = list(dict.fromkeys(harm.text for harm in mine))
                found.examples.append(
                    ObjectDamage(
                        key, worst.version, worst.damage, reasons, worst.exchange, worst.diff
                    )
                )
        return found

    def absorb(self, other: Damages) -> None:
        self.counts.update(other.counts)
        for one in other.examples:
            if sum(each.damage is one.damage for each in self.examples) < MOST_EXAMPLES:
                self.examples.append(one)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


NOTHING_TRIED = "nothing it was seen to do is about an object of the copy"


@dataclass
class ClientVerdict:
    """Verdict about one client after one step."""

    standing: ClientStanding = ClientStanding.UNAFFECTED
    requests: int = 0
    """Number of requests made or checked in its name."""
    reasons: list[str] = field(default_factory=list)
    evidence: list[Exchange] = field(default_factory=list)
    basis: list[str] = field(default_factory=list)
    """What the verdict rests on: samples and assumptions."""

    def note(
        self, standing: ClientStanding, reason: str = "", exchange: Exchange | None = None
    ) -> None:
        if standing.rank > self.standing.rank:
            self.standing = standing
            self.reasons, self.evidence = [], []
        if standing is not self.standing or standing is ClientStanding.UNAFFECTED:
            return
        if reason and reason not in self.reasons and len(self.reasons) < MOST_EVIDENCE:
            self.reasons.append(reason)
            if exchange is not None:
                self.evidence.append(exchange)

    def rests_on(self, text: str) -> None:
        if text not in self.basis:
            self.basis.append(text)

    def absorb(self, other: ClientVerdict) -> None:
        self.requests += other.requests
        if other.standing.rank > self.standing.rank:
            self.standing = other.standing
            self.reasons, self.evidence = list(other.reasons), list(other.evidence)
        elif other.standing is self.standing:
            fresh = [text for text in other.reasons if text not in self.reasons]
            self.reasons = [*self.reasons, *fresh][:MOST_EVIDENCE]
            more = [one for one in other.evidence if one not in self.evidence]
            self.evidence = [*self.evidence, *more][:MOST_EVIDENCE]
        for text in other.basis:
            self.rests_on(text)


class Way(StrEnum):
    """Ways to roll back from a step, best first."""

    FREE = "free"
    """The old CRD can be applied as it is, and every object reads as before."""
    MIGRATION = "with a migration"
    """The old CRD works with the new versions kept in it; objects must be written back."""
    LOSSY = "with losses"
    NONE = "none"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        return list(Way).index(self)


@dataclass
class WayBack:
    """What rolling back from a step would lose."""

    way: Way = Way.FREE
    why: str = ""
    losses: Damages = field(default_factory=Damages)
    new_fields: tuple[str, ...] = ()
    """Fields that the old CRD does not have; values written there meanwhile would be lost."""
    objects: int = 0

    def absorb(self, other: WayBack) -> None:
        """Add the result of another batch: the worse way counts."""
        if other.way.rank > self.way.rank:
            self.way, self.why = other.way, other.why
        self.losses.absorb(other.losses)
        self.new_fields = tuple(dict.fromkeys((*self.new_fields, *other.new_fields)))
        self.objects += other.objects


@dataclass
class MigrationOutcome:
    """What the migration of a rehearsal did."""

    counts: Counter[str] = field(default_factory=Counter)
    trouble: list[str] = field(default_factory=list)
    trimmed: bool = True
    seconds: float = 0.0
    pages: int = 0

    def absorb(self, other: MigrationOutcome) -> None:
        self.counts.update(other.counts)
        self.trouble = list(dict.fromkeys([*self.trouble, *other.trouble]))[:MOST_EXAMPLES]
        self.trimmed = self.trimmed and other.trimmed
        self.seconds += other.seconds
        self.pages += other.pages


class StepKind(StrEnum):
    """Kinds of steps on the way to a release."""

    CREATE = "create"
    SERVE = "serve"
    FLIP = "flip"
    MIGRATE = "migrate"
    UNSERVE = "unserve"
    REMOVE = "remove"
    WRITTEN = "as written"
    """The release's CRD as written, where a server refuses it after all steps."""


class RehearsalStep(NamedTuple):
    """One change of one CRD. ``crd`` is the CRD to apply; None for a step that rewrites objects."""

    release: str
    kind: StepKind
    title: str
    crd: Object | None = None
    versions: tuple[str, ...] = ()
    """Versions that are added or removed."""


@dataclass
class StepOutcome:
    """Outcome of a step, merged from all batches."""

    release: str
    kind: StepKind
    title: str
    refused: str = ""
    """Why the server refused it."""
    judged: int = 0
    again: str = ""
    """The earlier step whose findings hold here too, because nothing they depend on has changed."""
    before: int = 0
    """Number of objects that were unreadable or refused before the upgrade already."""
    unknown: Counter[str] = field(default_factory=Counter)
    damages: Damages = field(default_factory=Damages)
    lasting: int = 0
    """Number of objects damaged by an earlier step."""
    clients: dict[str, ClientVerdict] = field(default_factory=dict)
    back: WayBack = field(default_factory=WayBack)
    migration: MigrationOutcome | None = None
    seconds: float = 0.0
    requests: int = 0

    def absorb(self, other: StepOutcome) -> None:
        self.refused = self.refused or other.refused
        self.judged += other.judged
        self.before += other.before
        self.unknown.update(other.unknown)
        self.damages.absorb(other.damages)
        self.lasting += other.lasting
        for name, verdict in other.clients.items():
            self.clients.setdefault(name, ClientVerdict()).absorb(verdict)
        self.back.absorb(other.back)
        if other.migration is not None:
            self.migration = self.migration or MigrationOutcome()
            self.migration.absorb(other.migration)
        self.seconds += other.seconds
        self.requests += other.requests

    def silence_is_unknown(self) -> None:
        """Mark clients as unknown for which no object could be tested, after all objects were
        checked.
        """
        for verdict in self.clients.values():
            if not verdict.requests:
                verdict.note(ClientStanding.UNKNOWN, NOTHING_TRIED)


class Fault(StrEnum):
    """Faults that a rehearsal causes on purpose."""

    WEBHOOK_DOWN = "webhook down during the flip"
    MIGRATOR_KILLED = "migrator killed half-way"
    BOTH_CONTROLLERS = "old and new controller at once"


@dataclass
class FaultOutcome:
    """What happened during a planted fault, and whether the sandbox recovered."""

    fault: Fault
    happened: str
    """What was seen while the fault lasted."""
    recovered: bool | None
    """Whether it recovered; None if it could not be tried."""
    objects: int
    evidence: list[str] = field(default_factory=list)
    """What was wrong afterwards."""


class Load(NamedTuple):
    """Estimated load of an upgrade on the real cluster."""

    objects: int
    writes: int
    list_pages: int
    conversions: int
    megabytes: float
    seconds: float
    basis: tuple[str, ...]


@dataclass
class CrdRehearsal:
    """Results of one CRD over all releases."""

    name: str
    objects: int = 0
    same: int = 0
    """Number of objects that read from the copy as they were captured."""
    differing: list[str] = field(default_factory=list)
    """Some objects that do not, and where they differ."""
    differing_count: int = 0
    unloaded: Counter[str] = field(default_factory=Counter)
    """Number of objects that could not be checked, by reason."""
    steps: list[StepOutcome] = field(default_factory=list)
    faults: list[FaultOutcome] = field(default_factory=list)
    at_once: str = ""
    """The server's refusal of the last release applied in one go."""
    load: Load | None = None
    size: int = 0
    """Size of all objects in bytes."""
    notes: list[str] = field(default_factory=list)
    """What the copy is without."""
    misstored: Counter[str] = field(default_factory=Counter)
    """Objects stored at versions that ``status.storedVersions`` does not name, by version."""

    @property
    def no_return(self) -> StepOutcome | None:
        """Return the first step that cannot be rolled back without loss."""
        bad = (Way.NONE, Way.LOSSY)
        return next((step for step in self.steps if step.back.way in bad), None)

    def absorb(self, other: CrdRehearsal) -> None:
        self.objects += other.objects
        self.same += other.same
        self.differing = [*self.differing, *other.differing][:MOST_EXAMPLES]
        self.differing_count += other.differing_count
        self.unloaded.update(other.unloaded)
        self.misstored.update(other.misstored)
        known = {(step.release, step.kind): step for step in self.steps}
        for step in other.steps:
            mine = known.get((step.release, step.kind))
            if mine is None:
                self.steps.append(step)
            else:
                mine.absorb(step)
        self.faults += other.faults
        self.at_once = self.at_once or other.at_once
        self.size += other.size
        self.notes = list(dict.fromkeys([*self.notes, *other.notes]))[:MOST_EXAMPLES]


@dataclass
class Rehearsal:
    """Result of a rehearsal: each CRD, step by step."""

    origin: str
    releases: list[str]
    crds: list[CrdRehearsal] = field(default_factory=list)
    untouched: dict[str, int] = field(default_factory=dict)
    """CRDs that no release names, with their number of objects."""
    problems: list[str] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    """Number of objects that cannot be checked because of the input, by reason."""
    assumptions: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def objects(self) -> int:
        return sum(crd.objects for crd in self.crds)
