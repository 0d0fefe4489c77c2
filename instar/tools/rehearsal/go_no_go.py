"""Decides go or no-go, with reasons. Pure.

``cli/commands/rehearse.py`` calls it after ``run.py``. A check that was not possible is a reason
for no-go, like a known breakage; warnings are not. ``--accept WORD`` removes the reasons with that
word (one of ``WORDS``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from instar.base.escaping import shell_word
from instar.base.plurals import counted
from instar.tools.rehearsal.model import ClientStanding, CrdRehearsal, Rehearsal, StepOutcome
from instar.tools.reviewer.report import Damage

STOPPING = (Damage.UNREADABLE, Damage.PRUNED, Damage.INVALID, Damage.OWNERSHIP_LOST)
"""Kinds of damage to objects that are a reason for no-go."""
WORDS = (
    *(damage.value.replace(" ", "-") for damage in STOPPING),
    "broken",
    "unknown",
    "refused",
    "unmigrated",
    "stored-versions",
    "fault",
    "problem",
)
"""Words that ``--accept`` takes."""


class GoNoGoReason(NamedTuple):
    word: str
    text: str


class GoNoGo(NamedTuple):
    """The decision of a rehearsal with its reasons."""

    go: bool
    reasons: tuple[GoNoGoReason, ...]
    """Reasons against, or those that were accepted."""
    warnings: tuple[str, ...]


def decide(rehearsal: Rehearsal, accepted: Collection[str] = ()) -> GoNoGo:
    """Return GO unless a result that was not accepted speaks against it."""
    reasons = [GoNoGoReason("problem", text) for text in rehearsal.problems]
    reasons += [
        GoNoGoReason("unknown", f"{counted(number, 'object')}: {why}")
        for why, number in rehearsal.unknown.items()
        if number
    ]
    for crd in rehearsal.crds:
        reasons += _crd_reasons(crd)
    warnings = [text for crd in rehearsal.crds for text in _warnings(crd)]
    reasons = list(dict.fromkeys(reasons))
    go = all(reason.word in accepted for reason in reasons)
    return GoNoGo(go, tuple(reasons), tuple(dict.fromkeys(warnings)))


def _crd_reasons(crd: CrdRehearsal) -> list[GoNoGoReason]:
    found = [
        GoNoGoReason("unknown", f"{crd.name}: {counted(number, 'object')}: {why}")
        for why, number in crd.unloaded.items()
    ]
    found += [
        GoNoGoReason(
            "stored-versions",
            f"{crd.name}: {counted(number, 'object')} stored at {version}, which "
            "status.storedVersions does not name: an API server would let the version be removed, "
            f"and every list would fail; run instar migrate {shell_word(crd.name)} first",
        )
        for version, number in sorted(crd.misstored.items())
    ]
    known: dict[str, ClientStanding] = {}
    for step in crd.steps:
        found += _step_reasons(crd, step)
        found += _client_reasons(crd, step, known)
    found += [
        GoNoGoReason(
            "fault", f"{crd.name}: {fault.fault}: {'; '.join(fault.evidence) or fault.happened}"
        )
        for fault in crd.faults
        if fault.recovered is False
    ]
    found += [
        GoNoGoReason("unknown", f"{crd.name}: {fault.fault}: {fault.happened}")
        for fault in crd.faults
        if fault.recovered is None
    ]
    return found


def _step_reasons(crd: CrdRehearsal, step: StepOutcome) -> list[GoNoGoReason]:
    where = f"{crd.name}, {step.title}"
    found = []
    if step.refused:
        found.append(GoNoGoReason("refused", f"{where}: the server refuses it: {step.refused}"))
    for damage in STOPPING:
        number = step.damages.counts[damage]
        if number:
            found.append(
                GoNoGoReason(damage.value.replace(" ", "-"), f"{where}: {number} {damage}")
            )
    if step.migration is not None and (step.migration.trouble or not step.migration.trimmed):
        why = step.migration.trouble[0] if step.migration.trouble else "it does not end"
        found.append(GoNoGoReason("unmigrated", f"{where}: {why}"))
    unknown = Counter(step.unknown)
    if unknown:
        why, number = unknown.most_common(1)[0]
        found.append(GoNoGoReason("unknown", f"{where}: {number} readings and writes: {why}"))
    return found


def _client_reasons(
    crd: CrdRehearsal, step: StepOutcome, known: dict[str, ClientStanding]
) -> list[GoNoGoReason]:
    """Return each client once, with the first step at which its standing gets worse."""
    found = []
    for name, verdict in step.clients.items():
        before = known.get(name, ClientStanding.UNAFFECTED)
        if verdict.standing.rank <= before.rank:
            continue
        known[name] = verdict.standing
        if verdict.standing in (ClientStanding.BROKEN, ClientStanding.UNKNOWN):
            text = f"{crd.name}, {step.title}: {name}: {'; '.join(verdict.reasons)}"
            found.append(GoNoGoReason(verdict.standing.value, text))
    return found


def _warnings(crd: CrdRehearsal) -> list[str]:
    found = []
    warned: set[str] = set()
    for step in crd.steps:
        for damage in (Damage.FROZEN, Damage.CHANGED):
            number = step.damages.counts[damage]
            if number:
                found.append(f"{crd.name}, {step.title}: {number} {damage}")
        if step.before and not step.again:
            found.append(
                f"{crd.name}, {step.title}: in trouble before the upgrade already, and judged no "
                f"further: {counted(step.before, 'object')}"
            )
        for name, verdict in step.clients.items():
            if verdict.standing is ClientStanding.WARNED and name not in warned:
                warned.add(name)
                found.append(f"{crd.name}, {step.title}: {name}: {'; '.join(verdict.reasons)}")
    if crd.differing_count:
        found.append(
            f"{crd.name}: not read back as captured: {counted(crd.differing_count, 'object')}, for "
            f"example {crd.differing[0]}"
        )
    back = crd.no_return
    if back is not None:
        found.append(f"{crd.name}: from “{back.title}” on there is no way back without a loss")
    return found
