"""Fault injection on a sandbox (one CRD and a few objects): webhook down, migration killed, two
controllers writing the same object.

``batch.py`` calls it; each function returns whether every object recovered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.tools.rehearsal.converting import ConversionMode
from instar.tools.rehearsal.migrating import killed_migration, run_migration
from instar.tools.rehearsal.model import MOST_EXAMPLES, Fault, FaultOutcome
from instar.tools.rehearsal.object_diff import content_digest, differences, summary
from instar.tools.rehearsal.sandbox import Sandbox, answer
from instar.tools.rehearsal.version_findings import ReferenceReadings
from instar.wire.conversion.in_process import ConvertFunction

_DEAD_URL = "https://127.0.0.1:1/down"
_ROUNDS = 3
"""Number of times that the two controllers write in turn."""


class WebhookDown(Exception):
    """Raised by a converter that is switched off."""


async def webhook_down(stage: Sandbox, flip: Object, sample: Sequence[str]) -> FaultOutcome:
    """Change the storage version while the webhook is down; then start the webhook again."""
    if stage.conversion is not ConversionMode.MODULE and stage.conversion is not ConversionMode.URL:
        why = "there is no webhook that could be down"
        if stage.conversion is ConversionMode.ABSENT:
            why = "no converter and no webhook was given"
        recovered = True if stage.conversion is ConversionMode.NONE else None
        return FaultOutcome(Fault.WEBHOOK_DOWN, why, recovered, 0)
    switch = _Switch(stage.functions)
    async with stage.copy(switch.functions(), sample) as copy:
        before = await _readings(copy, sample)
        switch.on = False
        refused = await copy.apply_crd(_dead(flip, stage.conversion))
        if refused:
            return FaultOutcome(Fault.WEBHOOK_DOWN, f"the flip is refused: {refused}", False, 0)
        unread, unwritten = await _outage(copy, sample)
        switch.on = True
        await copy.apply_crd(flip)
        wrong = _wrong(before, await _readings(copy, sample))
    happened = (
        f"of {counted(len(sample), 'object')} {unread} could not be read at some version, "
        f"{unwritten} not be written"
    )
    return FaultOutcome(Fault.WEBHOOK_DOWN, happened, not wrong, len(sample), wrong)


def _dead(crd: Object, conversion: ConversionMode) -> Object:
    """Point the CRD to an unreachable URL, because the server itself calls webhook URLs."""
    if conversion is not ConversionMode.URL:
        return crd
    spec = crd["spec"]
    webhook = spec["conversion"]["webhook"]
    dead = {**webhook, "clientConfig": {**webhook["clientConfig"], "url": _DEAD_URL}}
    return {**crd, "spec": {**spec, "conversion": {**spec["conversion"], "webhook": dead}}}


class _Switch:
    def __init__(self, functions: Mapping[str, ConvertFunction]) -> None:
        self._inner = functions
        self.on = True

    def functions(self) -> dict[str, ConvertFunction]:
        return {name: self._switched(function) for name, function in self._inner.items()}

    def _switched(self, function: ConvertFunction) -> ConvertFunction:
        def convert(objects: list[Object], api_version: str) -> Sequence[Any]:
            if not self.on:
                raise WebhookDown("connection refused")
            return function(objects, api_version)

        return convert


async def _outage(stage: Sandbox, sample: Sequence[str]) -> tuple[int, int]:
    served = stage.crd.served()
    unread = unwritten = 0
    for key in sample:
        readings = [await stage.read(version, key) for version in served]
        unread += any(reading.obj is None for reading in readings)
        good = next((reading for reading in readings if reading.obj is not None), None)
        if good is None or good.obj is None:
            unwritten += 1
            continue
        path = stage.path(good.obj["apiVersion"].rpartition("/")[2], key)
        reply = await stage.ask("PUT", path, good.obj, query={"dryRun": "All"})
        unwritten += reply.refused
    return unread, unwritten


async def migrator_killed(stage: Sandbox, sample: Sequence[str]) -> FaultOutcome:
    """Kill a migration after half of its writes, read everything, start it again."""
    async with stage.copy(keys=sample) as copy:
        before = await _readings(copy, sample)
        await killed_migration(copy, max(1, len(sample) // 2))
        wrong = _wrong(before, await _readings(copy, sample))
        stored = list((await copy.refresh()).get("status", {}).get("storedVersions") or ())
        again = await run_migration(copy)
        if not again.ok:
            wrong.append(f"the second run does not finish: {again.stopped or again.not_pruned}")
        wrong += _wrong(before, await _readings(copy, sample))
    happened = (
        f"killed after {max(1, len(sample) // 2)} of {len(sample)} writes; storedVersions stayed "
        f"[{', '.join(stored)}]"
    )
    wrong = list(dict.fromkeys(wrong))[:MOST_EXAMPLES]
    return FaultOutcome(Fault.MIGRATOR_KILLED, happened, not wrong, len(sample), wrong)


async def both_controllers(
    stage: Sandbox, origin: ReferenceReadings, sample: Sequence[str]
) -> FaultOutcome:
    """Let an old controller write at an old version and a new one at the newest, each writing back
    what it read. No data may be lost, and the writes must converge.
    """
    served = stage.crd.served()
    old = next((version for version in origin.marks if version in served), "")
    new = next((version for version in served if version != old), "")
    if not old or not new:
        text = "no two versions are served at once"
        return FaultOutcome(Fault.BOTH_CONTROLLERS, text, True, 0)
    wrong: list[str] = []
    async with stage.copy(keys=sample) as copy:
        before = await _readings(copy, sample)
        restless = 0
        for key in sample:
            revisions = []
            for _ in range(_ROUNDS):
                for version in (old, new):
                    reading = await copy.read(version, key)
                    if reading.obj is None:
                        continue
                    reply = await copy.ask("PUT", copy.path(version, key), reading.obj)
                    if reply.refused:
                        wrong.append(f"{key}: the write at {version} is refused: {answer(reply)}")
                        continue
                    revisions.append(reply.document["metadata"]["resourceVersion"])
            restless += len(set(revisions[2:])) > 1
        if restless:
            wrong.append(
                f"every write changes {counted(restless, 'object')}: the two fight for ever"
            )
        wrong += _wrong(before, await _readings(copy, sample))
    wrong = list(dict.fromkeys(wrong))[:MOST_EXAMPLES]
    happened = f"{_ROUNDS} rounds of unchanged writes at {old} and {new} in turn"
    return FaultOutcome(Fault.BOTH_CONTROLLERS, happened, not wrong, len(sample), wrong)


Readings = dict[tuple[str, str], Object]


async def _readings(stage: Sandbox, sample: Sequence[str]) -> Readings:
    found: Readings = {}
    for version in stage.crd.served():
        for key in sample:
            reading = await stage.read(version, key)
            if reading.obj is not None:
                found[version, key] = reading.obj
    return found


def _wrong(before: Readings, after: Readings) -> list[str]:
    """Return the objects that read differently than before, without those that were unreadable
    before.
    """
    found = []
    for (version, key), obj in before.items():
        now = after.get((version, key))
        if now is None:
            found.append(f"{key} cannot be read at {version} any more")
        elif content_digest(now) != content_digest(obj):
            texts = [text for each in differences(obj, now).values() for text in each]
            found.append(f"{key} at {version}: {summary(texts)}")
    return found[:MOST_EXAMPLES]
