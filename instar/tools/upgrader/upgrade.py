"""Runs an upgrade: reviews and dry-runs every CRD, then runs all steps for one CRD after another.

Called by ``instar upgrade``. Nothing is written before every CRD was reviewed and dry-run on the
server, and before every object was compared with the object as the new CRDs return it. Each step is
safe to repeat; a run on a cluster that already matches the release writes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import field

from instar.base.errors import ApiError
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.undo.put_back import UndoReport
from instar.tools.upgrader.cluster import CrdAccess, CrdChanged, NotEstablished
from instar.tools.upgrader.report import CrdUpgrade, StepState, UpgradeReport
from instar.tools.upgrader.transition_crds import (
    bridge,
    narrowed_versions,
    same_crd,
    transitional_versions,
)
from instar.wire.client.client import Client

Migrate = Callable[[Object, Sequence[str]], Awaitable[MigrationReport | str | None]]
"""Given the live CRD and the versions that will go: the report of its migration, why it could not
start, or None when a count of the stored bytes shows that nothing is to be done."""
PutBack = Callable[[Object], Awaitable[UndoReport | None]]
"""Given the CRD as it was taken back: puts back the objects that the migration wrote; None when it
wrote none."""
Judge = Callable[[Object | None, Object], Awaitable[tuple[bool, tuple[str, ...]]]]
"""Old (None: new to the cluster) and new CRD: whether it may go on, and what to say."""


@dataclass(frozen=True, slots=True)
class UpgradeOptions:
    """What the flags of ``instar upgrade`` choose."""

    plan_only: bool = False
    take_back: bool = True
    """Undo a CRD whose later steps fail, and put its objects back."""
    wait: float = 60.0
    settle: float = 0.0
    """Seconds until every API server uses a changed CRD."""
    patience: RetryPolicy = field(default_factory=RetryPolicy)


async def upgrade(
    client: Client,
    crds: Sequence[Object],
    judge: Judge,
    migrate: Migrate,
    put_back: PutBack,
    options: UpgradeOptions,
) -> UpgradeReport:
    report = UpgradeReport(client.access.server)
    access = CrdAccess(client, options.patience)
    before: dict[str, Object | None] = {}
    for crd in crds:
        name = crd["metadata"]["name"]
        before[name] = await access.read(name)
        entry = CrdUpgrade(name)
        report.crds.append(entry)
        await _review_and_dry_run(access, entry, before[name], crd, judge)
    if not report.ok:
        names = ", ".join(entry.name for entry in report.crds if not entry.ok)
        report.refused = f"the review refused {names}"
    if not report.ok or options.plan_only:
        return report
    for crd, entry in zip(crds, report.crds, strict=True):
        await _carry_out(access, entry, before[entry.name], crd, migrate, put_back, options)
        if not entry.ok:
            break
    return report


async def _review_and_dry_run(
    access: CrdAccess, entry: CrdUpgrade, live: Object | None, crd: Object, judge: Judge
) -> None:
    """Review a CRD, and dry-run it on the server."""
    passed, lines = await judge(live, crd)
    entry.add("review", StepState.DONE if passed else StepState.REFUSED, lines=lines)
    if not passed:
        return
    body = crd if live is None else bridge(crd, live)
    try:
        tried = await access.apply(body, live, dry_run=True)
    except (ApiError, CrdChanged) as error:
        entry.add("dry run", StepState.REFUSED, str(error))
        return
    if live is None:
        entry.add("plan", StepState.PLANNED, "create")
        return
    kept = [*transitional_versions(crd, live), *narrowed_versions(crd, live)]
    entry.unchanged = same_crd(tried, live)
    if kept:
        text = f"apply with {', '.join(kept)} as now, migrate, then apply the release"
        entry.add("plan", StepState.PLANNED, text)
    elif entry.unchanged:
        entry.add("plan", StepState.NOTHING, "the CRD is as it should be")
    else:
        entry.add("plan", StepState.PLANNED, "apply")


async def _carry_out(
    access: CrdAccess,
    entry: CrdUpgrade,
    old: Object | None,
    crd: Object,
    migrate: Migrate,
    put_back: PutBack,
    options: UpgradeOptions,
) -> None:
    try:
        live = await _applied(access, entry, old, crd, options)
        live = await _migrated(access, entry, live, crd, migrate)
        narrowed = [] if old is None else narrowed_versions(crd, old)
        await _finished(access, entry, live, crd, narrowed, options)
    except (ApiError, CrdChanged, NotEstablished, _Unmigrated) as error:
        name = "migrate" if isinstance(error, _Unmigrated) else "apply"
        entry.add(name, StepState.FAILED, str(error))
        await _take_back(access, entry, old, put_back, options)


class _Unmigrated(Exception):
    """Some objects are still stored at old versions."""


async def _applied(
    access: CrdAccess, entry: CrdUpgrade, old: Object | None, crd: Object, options: UpgradeOptions
) -> Object:
    body = crd if old is None else bridge(crd, old)
    if old is not None and entry.unchanged:
        entry.add("apply", StepState.NOTHING)
        return old
    await access.apply(body, old)
    live = await access.established(entry.name, options.wait)
    entry.add(
        "apply", StepState.DONE, "created" if old is None else f"generation {_generation(live)}"
    )
    return live


async def _migrated(
    access: CrdAccess, entry: CrdUpgrade, live: Object, crd: Object, migrate: Migrate
) -> Object:
    leaving = transitional_versions(crd, live)
    if not read_live_crd(live).old_versions and not leaving:
        entry.add("migrate", StepState.NOTHING)
        return live
    done = await migrate(live, leaving)
    if done is None:
        entry.add("migrate", StepState.NOTHING, "every object is stored at the storage version")
        return live
    if isinstance(done, str):
        raise _Unmigrated(done)
    entry.migration = done.to_json()
    if not done.ok:
        raise _Unmigrated(done.stopped or done.not_pruned)
    entry.add("migrate", StepState.DONE, "verified, storedVersions trimmed", tuple(done.lines()))
    return await access.read(entry.name) or live


async def _finished(
    access: CrdAccess,
    entry: CrdUpgrade,
    live: Object,
    crd: Object,
    narrowed: Sequence[str],
    options: UpgradeOptions,
) -> None:
    """Apply the release's CRD if a transitional one was needed, and check that objects can
    be read.
    """
    extra = _names(live) - _names(crd)
    if not extra and not narrowed:
        return
    if extra:
        await _repointed(access, entry, live, extra)
    applied = await access.apply(crd, live)
    why = await access.why_unreadable(entry.name, options.settle)
    if why:
        await access.apply(live, applied)
        changed = ", ".join(sorted({*extra, *narrowed}))
        raise _Unmigrated(f"{changed} was put back at once, because {why}")
    if narrowed:
        entry.add("narrow versions", StepState.DONE, ", ".join(narrowed))
    if extra:
        entry.add("drop versions", StepState.DONE, ", ".join(sorted(extra)))


async def _repointed(
    access: CrdAccess, entry: CrdUpgrade, live: Object, leaving: Collection[str]
) -> None:
    """Change owner references that name a version that will be removed."""
    done = await access.repoint(live, leaving)
    if done.failed:
        raise _Unmigrated(f"owner references could not be changed: {'; '.join(done.failed)}")
    if done.changed or done.unseen:
        unseen = f", {counted(len(done.unseen), 'kind')} could not be looked at" * bool(done.unseen)
        text = f"{done.changed} changed{unseen}"
        entry.add("owner references", StepState.DONE, text, tuple(done.unseen))


async def _take_back(
    access: CrdAccess,
    entry: CrdUpgrade,
    old: Object | None,
    put_back: PutBack,
    options: UpgradeOptions,
) -> None:
    if not options.take_back:
        return
    if old is None:
        text = "the CRD is new and stays; delete it by hand if nothing uses it"
        entry.add("roll back", StepState.NOTHING, text)
        return
    wrong = await access.take_back(old)
    if wrong:
        entry.add("roll back", StepState.FAILED, wrong)
        return
    entry.add("roll back", StepState.TAKEN_BACK, "the CRD serves what it served before")
    live = await access.read(entry.name)
    done = None if live is None else await put_back(live)
    if done is not None:
        state = StepState.TAKEN_BACK if done.ok else StepState.FAILED
        head, *lines = done.lines()
        entry.add("roll back of objects", state, head, tuple(line.strip() for line in lines))


def _names(crd: Object) -> set[str]:
    return {version["name"] for version in crd["spec"]["versions"]}


def _generation(crd: Object) -> int:
    return int(crd["metadata"].get("generation") or 0)
