"""Runs a whole rehearsal: takes a captured cluster through the coming releases, batch by batch, and
merges the results into one report.

``instar rehearse`` calls it. Batches run in this process or in worker processes.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.rehearsal.batch import RehearsalBatch, create, play
from instar.tools.rehearsal.clients import ObservedClient, Resource, clients_of
from instar.tools.rehearsal.converting import ConversionMode, Converting
from instar.tools.rehearsal.estimate import load_of
from instar.tools.rehearsal.model import CrdRehearsal, Rehearsal
from instar.tools.snapshots.captured_cluster import CapturedCluster

_BATCHES_A_PROCESS = 2
"""Batches after which a worker process is replaced, because its caches only grow."""
BATCH = 5_000
"""Objects per batch, which bounds the memory of a process."""
_AROUND = frozenset(
    {
        "Namespace",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
_WEBHOOKS = frozenset({"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"})
_LARGEST = 1_000_000
Progress = Callable[[str, int], None]
"""Called with a CRD's name and how many more of its objects are done."""


@dataclass(frozen=True, slots=True)
class RehearsalRelease:
    """The CRDs of one release."""

    name: str
    crds: Mapping[str, Object]


@dataclass(frozen=True, slots=True)
class RehearsalOptions:
    """What the flags of ``instar rehearse`` choose."""

    converting: Converting
    jobs: int = 1
    batch: int = BATCH
    sample: int = 20
    faults: bool = True


def rehearse(
    world: CapturedCluster,
    releases: Sequence[RehearsalRelease],
    options: RehearsalOptions,
    progress: Progress,
) -> Rehearsal:
    began = time.monotonic()
    report = Rehearsal(world.origin, [release.name for release in releases])
    before = {crd["metadata"]["name"]: crd for crd in world.crds()}
    named = {name for release in releases for name in release.crds}
    judged = {name: before[name] for name in sorted(named & before.keys())}
    resources = {name: _resource(crd) for name, crd in judged.items()}
    clients = clients_of(set(resources.values()), world.usage(), world.audit())
    others = list(_around(world))
    found: dict[str, CrdRehearsal] = {}
    with _Players(options.jobs) as players:
        for name, crd in judged.items():
            cast = tuple(clients[resources[name]].values())
            batches = _batches(world, crd, releases, options, cast, others)
            for batch, result in players.run(batches):
                known = found.setdefault(name, CrdRehearsal(name))
                known.absorb(result)
                progress(name, len(batch.objects))
    for release in releases:
        for name in sorted(release.crds.keys() - before.keys() - found.keys()):
            crd = release.crds[name]
            found[name] = asyncio.run(create(release.name, crd, options.converting))
    report.crds = [found[name] for name in sorted(found)]
    for crd_result in report.crds:
        for step in crd_result.steps:
            step.silence_is_unknown()
        if crd_result.name not in before:
            continue
        served = sum(bool(v.get("served")) for v in before[crd_result.name]["spec"]["versions"])
        crd_result.load = load_of(crd_result, served)
    _complete(report, world, before, named, releases, options)
    report.seconds = time.monotonic() - began
    return report


def _resource(crd: Object) -> Resource:
    spec = crd["spec"]
    return str(spec["group"]), str(spec["names"]["plural"])


def _around(world: CapturedCluster) -> Iterator[Object]:
    """Return the captured objects that affect writes to custom resources."""
    for obj in world.other_objects():
        if obj.get("kind") in _AROUND and len(str(obj)) < _LARGEST:
            yield obj


def _batches(
    world: CapturedCluster,
    crd: Object,
    releases: Sequence[RehearsalRelease],
    options: RehearsalOptions,
    clients: tuple[ObservedClient, ...],
    others: Sequence[Object],
) -> Iterator[RehearsalBatch]:
    """Yield at least one batch per CRD, because a CRD without objects may have clients."""
    name = crd["metadata"]["name"]
    steps = tuple((one.name, one.crds[name]) for one in releases if name in one.crds)
    first = True
    for objects in _chunks(world.objects(name), options.batch):
        yield RehearsalBatch(
            crd=crd,
            releases=steps,
            objects=tuple(objects),
            clients=clients,
            others=tuple(others),
            converting=options.converting,
            first=first,
            faults=options.faults,
            sample=options.sample,
            exact=world.exact,
        )
        first = False


def _chunks(objects: Iterable[Object], size: int) -> Iterator[list[Object]]:
    chunk: list[Object] = []
    empty = True
    for obj in objects:
        chunk.append(obj)
        empty = False
        if len(chunk) >= size:
            yield chunk
            chunk = []
    if chunk or empty:
        yield chunk


def _complete(
    report: Rehearsal,
    world: CapturedCluster,
    before: Mapping[str, Object],
    named: set[str],
    releases: Sequence[RehearsalRelease],
    options: RehearsalOptions,
) -> None:
    """Add the results that do not belong to a single CRD."""
    report.problems += list(world.problems)
    for name in sorted(named - before.keys()):
        report.assumptions.append(f"{name} is new: only its creation was tried")
    report.untouched = dict.fromkeys(sorted(before.keys() - named), 0)
    unknown = [
        name
        for name in sorted(named & before.keys())
        if options.converting.of(
            before[name], *(one.crds[name] for one in releases if name in one.crds)
        )
        is ConversionMode.ABSENT
    ]
    if unknown:
        report.assumptions.append(
            f"no converter and no webhook was given for {', '.join(unknown)}: what needs a "
            "conversion is unknown"
        )
    webhooks = [
        str((obj.get("metadata") or {}).get("name"))
        for obj in world.other_objects()
        if obj.get("kind") in _WEBHOOKS
    ]
    if webhooks:
        report.assumptions.append(
            f"admission webhooks were not asked ({', '.join(webhooks[:5])}): what they would "
            "change or refuse is not in this verdict"
        )
    if named & before.keys() and not world.usage() and next(world.audit(), None) is None:
        report.assumptions.append(
            "no usage and no audit events were captured: clients are known by managedFields alone"
        )
    if not world.exact:
        report.assumptions.append(
            "objects were captured through the API: each is taken to be stored at the version it "
            "was read at"
        )


class _Players:
    """Runs batches here or in worker processes, with a bounded number in flight."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> _Players:
        if self._jobs > 1:
            # spawned, not forked: a fork of a process with threads may deadlock
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._jobs, mp_context=context, max_tasks_per_child=_BATCHES_A_PROCESS
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(
        self, batches: Iterable[RehearsalBatch]
    ) -> Iterator[tuple[RehearsalBatch, CrdRehearsal]]:
        if self._pool is None:
            for batch in batches:
                yield batch, _play(batch)
            return
        waiting: dict[Future[CrdRehearsal], RehearsalBatch] = {}
        for batch in batches:
            try:
                waiting[self._pool.submit(_play, batch)] = batch
            except BrokenProcessPool:
                yield batch, _killed(batch)
            if len(waiting) > self._jobs:
                yield from _finished(waiting)
        while waiting:
            yield from _finished(waiting)


def _finished(
    waiting: dict[Future[CrdRehearsal], RehearsalBatch],
) -> Iterator[tuple[RehearsalBatch, CrdRehearsal]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        batch = waiting.pop(future)
        try:
            result = future.result()
        except BrokenProcessPool:
            result = _killed(batch)
        yield batch, result


def _killed(batch: RehearsalBatch) -> CrdRehearsal:
    result = CrdRehearsal(batch.name, objects=len(batch.objects))
    result.unloaded["a process of the rehearsal was killed"] += max(len(batch.objects), 1)
    return result


def _play(batch: RehearsalBatch) -> CrdRehearsal:
    try:
        return asyncio.run(play(batch))
    except Exception as error:
        # An unexpected failure of one batch is reported and its objects count as unknown;
        # the other batches go on.
        told = " ".join(str(error).split())[:200]
        result = CrdRehearsal(batch.name, objects=len(batch.objects))
        why = f"the rehearsal of them failed: {type(error).__name__}: {told}"
        result.unloaded[why] += max(len(batch.objects), 1)
        return result
