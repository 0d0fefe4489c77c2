"""A model of the watch cache and the history, small enough that all of it can be explored.

Several processes follow one store. The model says what each of them must show after any schedule of
writes, deliveries, compactions, broken streams, and processes that join and leave;
``schedules`` yields every schedule up to a length, once for each way into a state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

KEYS = ("a", "b")
PROCESSES = 2
Step = tuple[str, ...]
Log = tuple[tuple[int, str, bool], ...]
"""Revision, key, and whether the key exists afterwards."""


@dataclass(frozen=True)
class ProcessModel:
    reached: int
    """The last revision that was delivered."""
    base: int
    """The revision of the state that it has loaded."""
    watch: int = -1
    """The revision that its watcher has seen; -1: none."""
    """A watcher lives in its client: it is resumed after the process lost its stream."""


@dataclass(frozen=True)
class Model:
    log: Log = ()
    compacted: int = 0
    processes: tuple[ProcessModel | None, ...] = (ProcessModel(1, 1), None)

    @property
    def revision(self) -> int:
        return self.log[-1][0] if self.log else 1

    def state(self, revision: int) -> dict[str, int]:
        """Key → revision of its value, as of a revision."""
        found: dict[str, int] = {}
        for at, key, exists in self.log:
            if at <= revision:
                found.pop(key, None)
                if exists:
                    found[key] = at
        return found

    def between(self, after: int, until: int) -> Log:
        return tuple(entry for entry in self.log if after < entry[0] <= until)

    def oldest_known(self, process: ProcessModel, told: int, window: int) -> int:
        """The revision from which a process that keeps so many changes, and was told of a
        compaction at ``told``, must be able to show every change."""
        dropped = self.between(process.base, process.reached)[:-window]
        return max(process.base, told, dropped[-1][0] if dropped else 0)

    def steps(self) -> Iterator[Step]:
        for key in KEYS:
            yield ("put", key)
            yield ("stale", key)
            if key in self.state(self.revision):
                yield ("delete", key)
        if self.revision - 1 > self.compacted:
            yield ("compact",)
        for number, process in enumerate(self.processes):
            at = str(number)
            if process is None:
                yield ("join", at)
                continue
            yield ("leave", at)
            yield ("cut", at)
            if process.reached < self.revision:
                yield ("deliver", at)
            if process.watch < 0:
                for revision in range(1, process.reached + 1):
                    yield ("watch", at, str(revision))

    def after(self, step: Step) -> Model:
        match step:
            case ("put", key):
                return replace(self, log=(*self.log, (self.revision + 1, key, True)))
            case ("delete", key):
                return replace(self, log=(*self.log, (self.revision + 1, key, False)))
            case ("compact",):
                return replace(self, compacted=self.revision - 1)
            case ("join" | "cut", at):
                return self._with(int(at), ProcessModel(self.revision, self.revision))
            case ("leave", at):
                return self._with(int(at), None)
            case ("deliver", at):
                process = self._process(at)
                reached = process.reached + 1
                watch = reached if process.watch >= 0 else -1
                return self._with(int(at), replace(process, reached=reached, watch=watch))
            case ("watch", at, revision):
                process = self._process(at)
                if int(revision) < process.base:  # it may be refused; the state stays the same
                    return self
                return self._with(int(at), replace(process, watch=process.reached))
        return self  # a write that is refused

    def _process(self, at: str) -> ProcessModel:
        process = self.processes[int(at)]
        assert process is not None
        return process

    def _with(self, at: int, process: ProcessModel | None) -> Model:
        processes = (*self.processes[:at], process, *self.processes[at + 1 :])
        return replace(self, processes=processes)


def schedules(length: int) -> Iterator[tuple[Step, ...]]:
    """Every step from every state that is reached within ``length`` steps, by a shortest way."""
    ways: dict[Model, tuple[Step, ...]] = {Model(): ()}
    waiting = deque(ways)
    while waiting:
        model = waiting.popleft()
        way = ways[model]
        if len(way) == length:
            continue
        for step in model.steps():
            yield (*way, step)
            following = model.after(step)
            if following not in ways:
                ways[following] = (*way, step)
                waiting.append(following)
