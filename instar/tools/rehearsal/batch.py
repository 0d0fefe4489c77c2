"""Takes one CRD and some of its objects through a whole upgrade, on an embedded server
(``sandbox.py``).

``run.py`` calls it, in its own process or in worker processes. Objects do not depend on each other,
so batches run one after the other or in parallel, and their outcomes are merged.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import field
from uuid import NAMESPACE_URL, uuid5

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.server.lifecycle.embedded import embedded
from instar.tools.rehearsal.client_replay import Managed, Replayer, judge_by_usage, managers_of
from instar.tools.rehearsal.clients import ObservedClient
from instar.tools.rehearsal.converting import ConversionMode, Converting
from instar.tools.rehearsal.defaulted_status import without_defaulted_status
from instar.tools.rehearsal.faults import both_controllers, migrator_killed, webhook_down
from instar.tools.rehearsal.migrating import outcome, run_migration
from instar.tools.rehearsal.model import (
    MOST_EXAMPLES,
    CrdRehearsal,
    DamageFact,
    Damages,
    Exchange,
    Fault,
    RehearsalStep,
    StepKind,
    StepOutcome,
)
from instar.tools.rehearsal.object_diff import content_digest, differences, key_of, summary
from instar.tools.rehearsal.rollback import try_rollback
from instar.tools.rehearsal.sandbox import Sandbox, answer
from instar.tools.rehearsal.steps import steps
from instar.tools.rehearsal.version_checks import StepChecker
from instar.tools.rehearsal.version_findings import ReferenceReadings, VersionFindings
from instar.tools.reviewer.report import Damage
from instar.tools.snapshots.store_layout import is_name
from instar.tools.upgrader.transition_crds import crd_to_apply


@dataclass(frozen=True)
class RehearsalBatch:
    """Input of one batch; plain values, so that it can be sent to a process."""

    crd: Object
    """The CRD before the upgrade, with its status."""
    releases: tuple[tuple[str, Object], ...]
    """Name of each release and the CRD it brings, in order."""
    objects: tuple[Object, ...]
    clients: tuple[ObservedClient, ...]
    others: tuple[Object, ...]
    """Namespaces and admission policies that writes are subject to."""
    converting: Converting
    first: bool
    """Whether this batch also answers for collections and for the CRD itself."""
    faults: bool = True
    sample: int = 20
    """Objects per manager and per fault."""
    exact: bool = False
    """Whether the objects are the bytes of a store, so that their apiVersion is the stored one."""

    @property
    def name(self) -> str:
        return str(self.crd["metadata"]["name"])


@dataclass
class _Play:
    """State carried from step to step."""

    batch: RehearsalBatch
    stage: Sandbox
    origin: ReferenceReadings
    reference: ReferenceReadings
    judge: StepChecker
    managed: Managed
    done: set[tuple[str, Damage]] = field(default_factory=set)
    """Damage that was reported already."""
    result: CrdRehearsal = field(default_factory=lambda: CrdRehearsal(""))

    @property
    def rewritten(self) -> bool:
        return self.judge.rewritten > 0


async def play(batch: RehearsalBatch) -> CrdRehearsal:
    result = CrdRehearsal(batch.name, misstored=_misstored(batch))
    documents = [batch.crd, *(crd for _, crd in batch.releases)]
    conversion = batch.converting.of(*documents)
    functions = {} if conversion is ConversionMode.NONE else batch.converting.functions(batch.crd)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(embedded(functions))
        base = Sandbox(api, batch.name, (), conversion, functions)
        refused = await _install(base, batch)
        if refused:
            why = f"the server refuses the CRD of before: {refused}"
            result.unloaded[why] += len(batch.objects)
            return result
        not_there = await base.create_others(batch.others)
        result.notes += [f"left out of the copy: {text}" for text in not_there]
        placed = _objects_to_load(batch, base)
        await _load(base, batch, placed, result)
        origin = ReferenceReadings(base)
        origin.home = {key_of(obj): _version(obj) for obj in placed}
        await origin.learn()
        _read_back(origin, result, await _differing(placed, origin))
        stage = await stack.enter_async_context(base.copy())
        managed = managers_of(placed, base.crd.group, batch.sample)
        play = _Play(
            batch, stage, origin, origin, StepChecker(stage, origin), managed, result=result
        )
        if batch.first:
            result.at_once = await _refusal_without_steps(stage, batch)
        for release, crd in batch.releases:
            if play.judge.rewritten or release != batch.releases[0][0]:
                await _renew_reference(stack, play)
            if not await _release(play, release, batch.converting.with_rehearsal_webhook(crd)):
                break
    return result


def _misstored(batch: RehearsalBatch) -> Counter[str]:
    """Count the objects stored at versions that ``status.storedVersions`` does not name."""
    stored = (batch.crd.get("status") or {}).get("storedVersions") or ()
    if not batch.exact or not stored:
        return Counter()
    found = Counter(_version(obj) for obj in batch.objects if isinstance(obj, dict))
    known = {version["name"] for version in batch.crd["spec"]["versions"]} - set(stored)
    return Counter({name: number for name, number in found.items() if name in known})


async def create(release: str, crd: Object, converting: Converting) -> CrdRehearsal:
    """Check whether a server accepts a CRD that the cluster does not have yet."""
    name = str(crd["metadata"]["name"])
    (step,) = steps(None, converting.with_rehearsal_webhook(crd), release)
    told = StepOutcome(release, step.kind, step.title)
    async with embedded() as api:
        stage = Sandbox(api, name, (), ConversionMode.NONE, {})
        told.refused = await stage.apply_crd(step.crd or {})
    return CrdRehearsal(name, steps=[told])


async def _install(stage: Sandbox, batch: RehearsalBatch) -> str:
    """Install the CRD that the cluster has now, with its storedVersions."""
    crd = crd_to_apply(batch.converting.with_rehearsal_webhook(batch.crd))
    refused = await stage.apply_crd(crd)
    stored = (batch.crd.get("status") or {}).get("storedVersions")
    named = {_version(obj) for obj in batch.objects if isinstance(obj, dict)}
    known = [version["name"] for version in crd["spec"]["versions"]]
    wanted = [name for name in known if name in named or name in (stored or ())]
    if not refused and wanted:
        await stage.set_stored_versions(wanted)
    return refused


def _objects_to_load(batch: RehearsalBatch, stage: Sandbox) -> list[Object]:
    crd = stage.crd
    known = {f"{crd.group}/{version.name}" for version in crd.versions}
    wanted = [
        obj
        for obj in batch.objects
        if obj.get("apiVersion") in known and obj.get("kind") == crd.names.kind and _named(obj)
    ]
    return [as_stored(_with_namespace(obj, namespaced=crd.namespaced)) for obj in wanted]


def _with_namespace(obj: Object, *, namespaced: bool) -> Object:
    """Return the object with the default namespace if its manifest leaves the namespace out."""
    metadata = obj["metadata"]
    if namespaced == bool(metadata.get("namespace")):
        return obj
    kept = {name: value for name, value in metadata.items() if name != "namespace"}
    return {**obj, "metadata": {**kept, **({"namespace": "default"} if namespaced else {})}}


def as_stored(obj: Object) -> Object:
    """Return a manifest with the metadata that every stored object has."""
    metadata = {
        "generation": 1,
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "uid": str(uuid5(NAMESPACE_URL, f"{obj.get('kind')}/{key_of(obj)}")),
        **obj["metadata"],
    }
    return {**obj, "metadata": metadata}


async def _load(
    stage: Sandbox, batch: RehearsalBatch, placed: list[Object], result: CrdRehearsal
) -> None:
    result.objects = len(batch.objects)
    result.size = await stage.place(without_defaulted_status(placed, stage.crd))
    if len(placed) < len(batch.objects):
        why = (
            "objects without a name they can have, or of a kind or version their CRD does not have"
        )
        result.unloaded[why] += len(batch.objects) - len(placed)


def _named(obj: Object) -> bool:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not is_name(metadata.get("name")):
        return False
    return not metadata.get("namespace") or is_name(metadata["namespace"])


def _version(obj: Object) -> str:
    return str(obj.get("apiVersion") or "").rpartition("/")[2]


async def _differing(placed: list[Object], origin: ReferenceReadings) -> list[str]:
    """Return the objects that the copy shows differently from the snapshot."""
    found = []
    for obj in placed:
        key, version = key_of(obj), _version(obj)
        known = origin.marks.get(version)
        if known is None or known.get(key) in (None, content_digest(obj)):
            continue
        reading = await origin.stage.read(version, key)
        if reading.obj is not None:
            texts = [text for each in differences(obj, reading.obj).values() for text in each]
            found.append(f"{key}: {summary(texts)}")
    return found


def _read_back(origin: ReferenceReadings, result: CrdRehearsal, differing: list[str]) -> None:
    unread = 0
    for key in origin.stage.keys:
        unread += not any(key in marks for marks in origin.marks.values())
    if unread:
        result.unloaded["objects that cannot be read in the state before the upgrade"] += unread
    for version, marks in origin.marks.items():
        # unknown whether the cluster could convert it, or only the converter at hand cannot
        lacking = sum(
            bool(origin.other_version(key)) for key in set(origin.stage.keys) - marks.keys()
        )
        if lacking:
            result.unloaded[not_read(version)] += lacking
    result.differing_count = len(differing)
    result.differing = differing[:MOST_EXAMPLES]
    result.same = len(origin.stage.keys) - unread - len(differing)


def not_read(version: str) -> str:
    """Return why nothing is known of objects that could not be converted to the version."""
    return f"not tested: reading at {version} (not converted); pass --converter or --webhook"


async def _refusal_without_steps(stage: Sandbox, batch: RehearsalBatch) -> str:
    """Return the server's refusal if the last release is applied without the steps in between."""
    _, crd = batch.releases[-1]
    return await stage.apply_crd(
        crd_to_apply(batch.converting.with_rehearsal_webhook(crd)), dry_run=True
    )


async def _renew_reference(stack: AsyncExitStack, play: _Play) -> None:
    """Use the current state as the new reference, because each release is compared with the state
    before it.
    """
    kept = await stack.enter_async_context(play.stage.copy())
    reference = ReferenceReadings(kept)
    reference.home = play.reference.home
    await reference.learn()
    play.reference = reference
    play.judge = StepChecker(play.stage, reference, play.judge.rewritten)


async def _release(play: _Play, release: str, crd: Object) -> bool:
    """Run the steps of a release; return False if a step is refused, because the rest cannot run
    then.
    """
    live = await play.stage.refresh()
    planned = steps(live, crd, release)
    leaving = [name for step in planned if step.kind is StepKind.REMOVE for name in step.versions]
    for step in planned:
        began, asked = time.monotonic(), play.stage.requests
        if play.batch.faults and play.batch.first:
            await _faults(play, step)
        told = StepOutcome(release, step.kind, step.title)
        play.result.steps.append(told)
        if step.crd is None:
            report = await run_migration(play.stage, leaving)
            told.migration = outcome(report, len(play.stage.crd.served()))
            play.judge.rewritten += 1
        else:
            told.refused = await play.stage.apply_crd(step.crd)
        if told.refused:
            return False
        await _judge(play, step, told)
        told.back = await try_rollback(play.stage, play.origin, rewritten=play.rewritten)
        told.seconds, told.requests = time.monotonic() - began, play.stage.requests - asked
    return await _dry_run_release(play, release, crd)


async def _dry_run_release(play: _Play, release: str, crd: Object) -> bool:
    """Dry-run the release's CRD exactly as written: the steps apply an equivalent CRD, and a server
    may refuse the original.
    """
    refused = await play.stage.apply_crd(crd_to_apply(crd), dry_run=True)
    if refused:
        told = StepOutcome(release, StepKind.WRITTEN, "apply the CRD as it is written")
        told.refused = refused
        play.result.steps.append(told)
    return not refused


async def _judge(play: _Play, step: RehearsalStep, told: StepOutcome) -> None:
    found = await play.judge.check_step(step.title)
    told.judged = len(play.stage.keys)
    told.again = _valid_since(found, step)
    harms: list[DamageFact] = []
    for judgement in found.values():
        harms += judgement.harms
        told.unknown.update(judgement.unknown)
    told.before = len({key for judgement in found.values() for key in judgement.before})
    fresh = [harm for harm in harms if (harm.key, harm.damage) not in play.done]
    told.damages = Damages.of(fresh)
    told.lasting = len({harm.key for harm in harms} - {harm.key for harm in fresh})
    play.done |= {(harm.key, harm.damage) for harm in fresh}
    await _clients(play, found, told)


def _valid_since(found: dict[str, VersionFindings], step: RehearsalStep) -> str:
    """Return the title of the step whose findings are still valid."""
    since = {judgement.since for judgement in found.values()}
    return next(iter(since)) if len(since) == 1 and since != {step.title} else ""


async def _clients(play: _Play, found: dict[str, VersionFindings], told: StepOutcome) -> None:
    replayer = Replayer(play.stage, play.reference, play.managed)
    not_served = {}
    for client in play.batch.clients:
        for use in client.uses:
            if use.version not in found and use.version not in not_served:
                not_served[use.version] = await _list_exchange(play.stage, use.version)
        verdict = judge_by_usage(client, play.stage.crd, found, play.origin, not_served)
        if not play.batch.first:
            verdict.requests = 0  # made once, for all batches
        verdict.absorb(await replayer.recorded(client, collections=play.batch.first))
        told.clients[client.name] = verdict
    told.clients.update(await replayer.managers())


async def _list_exchange(stage: Sandbox, version: str) -> Exchange:
    path = stage.path(version)
    return Exchange(f"GET {path}", "", answer(await stage.ask("GET", path, query={"limit": "1"})))


async def _faults(play: _Play, step: RehearsalStep) -> None:
    sample = list(play.stage.keys[: play.batch.sample])
    if not sample:
        return
    known = {one.fault for one in play.result.faults}
    faults = play.result.faults
    if step.kind is StepKind.FLIP and step.crd is not None and Fault.WEBHOOK_DOWN not in known:
        faults.append(await webhook_down(play.stage, step.crd, sample))
    if step.kind is StepKind.MIGRATE and Fault.MIGRATOR_KILLED not in known:
        faults.append(await migrator_killed(play.stage, sample))
        faults.append(await both_controllers(play.stage, play.origin, sample))
