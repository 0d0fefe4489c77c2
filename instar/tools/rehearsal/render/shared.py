"""Text helpers shared by the renderers of ``instar rehearse``.

Called by ``text.py``, ``markdown.py``, ``html.py``, ``json.py`` and ``junit.py``; ``model.py``
defines the results.
"""

from __future__ import annotations

from instar.base.plurals import counted
from instar.tools.migrator.plan import human
from instar.tools.rehearsal.go_no_go import GoNoGo
from instar.tools.rehearsal.model import (
    ClientStanding,
    CrdRehearsal,
    Exchange,
    Load,
    ObjectDamage,
    Rehearsal,
    StepOutcome,
    Way,
    WayBack,
)
from instar.tools.reviewer.report import Damage

MARKS = {
    ClientStanding.UNAFFECTED: "✓",
    ClientStanding.WARNED: "!",
    ClientStanding.UNKNOWN: "?",
    ClientStanding.BROKEN: "✗",
}
WAYS = {
    Way.FREE: "the old CRD can be applied again",
    Way.MIGRATION: "only with the new version kept and the objects written back",
    Way.LOSSY: "only with losses",
    Way.NONE: "none",
    Way.UNKNOWN: "unknown",
}


def strip_control_characters(text: str) -> str:
    """Remove control characters, so that a value cannot move the cursor of a terminal."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def step_standing(step: StepOutcome) -> ClientStanding:
    """Return the worst standing of a step."""
    clients = [verdict.standing for verdict in step.clients.values()]
    worst = max(clients, key=lambda one: one.rank, default=ClientStanding.UNAFFECTED)
    migration = step.migration
    stuck = migration is not None and (bool(migration.trouble) or not migration.trimmed)
    bad = (Damage.UNREADABLE, Damage.PRUNED, Damage.INVALID, Damage.OWNERSHIP_LOST)
    if step.refused or stuck or any(step.damages.counts[damage] for damage in bad):
        return ClientStanding.BROKEN
    if step.unknown and worst is not ClientStanding.BROKEN:
        return ClientStanding.UNKNOWN
    if step.damages.total and worst is ClientStanding.UNAFFECTED:
        return ClientStanding.WARNED
    return worst


def headline(rehearsal: Rehearsal) -> str:
    """Return the first line of a report."""
    return (
        f"{rehearsal.origin}: {counted(f'{rehearsal.objects:,}', 'object')} of "
        f"{counted(len(rehearsal.crds), 'CRD')} through {', '.join(rehearsal.releases)}"
    )


def verdict(decision: GoNoGo) -> str:
    if decision.go:
        rest = []
        if decision.reasons:
            rest.append(f"{counted(len(decision.reasons), 'reason')} accepted")
        if decision.warnings:
            rest.append(counted(len(decision.warnings), "warning"))
        return "GO" + (f", {', '.join(rest)}" if rest else "")
    return f"NO-GO: {counted(len(decision.reasons), 'reason')}"


def loaded(crd: CrdRehearsal) -> str:
    """Return how many captured objects the sandbox reads back unchanged."""
    if not crd.objects:
        return "no objects"
    unread = sum(crd.unloaded.values())
    if crd.same == crd.objects:
        return f"{counted(f'{crd.objects:,}', 'object')}, all read back as captured"
    parts = [f"{crd.same:,} read back as captured"]
    if crd.differing_count:
        parts.append(f"{crd.differing_count:,} otherwise")
    if unread:
        parts.append(f"{unread:,} could not be judged")
    return f"{counted(f'{crd.objects:,}', 'object')}: {', '.join(parts)}"


def damages(step: StepOutcome) -> list[str]:
    """Return the damage of a step, a text per kind of damage."""
    counts = step.damages.counts
    found = [f"{counts[damage]:,} {damage}" for damage in Damage if counts[damage]]
    if step.lasting:
        found.append(f"{step.lasting:,} damaged by an earlier step")
    return found


def example(one: ObjectDamage) -> str:
    """Return one damaged object with its first reason."""
    more = f" (and {len(one.reasons) - 1} more)" if len(one.reasons) > 1 else ""
    return f"{one.key}: {one.reasons[0]}{more}"


def exchange(one: Exchange) -> str:
    """Return a request of a client with its response, and the response before the release."""
    before = f" (before: {one.before})" if one.before else ""
    about = f" [{one.object}]" if one.object and one.object not in one.request else ""
    return f"{one.request}{about} → {one.answer}{before}"


def rollback_text(back: WayBack) -> str:
    text = WAYS[back.way]
    if back.losses.total:
        text += f": {counted(f'{back.losses.total:,}', 'object')} would read otherwise"
    return text


def load(found: Load) -> str:
    """Return the estimated load of a migration."""
    parts = [
        counted(f"{found.writes:,}", "write"),
        f"{counted(f'{found.list_pages:,}', 'page')} listed",
        f"{counted(f'{found.conversions:,}', 'conversion')} at most",
        f"{found.megabytes:,} MB",
    ]
    return f"about {human(found.seconds)}: {', '.join(parts)} ({'; '.join(found.basis)})"
