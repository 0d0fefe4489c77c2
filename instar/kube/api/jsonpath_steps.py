"""Steps of a compiled printer column path: functions from a list of values to a list of values.

Built by ``jsonpath.py``, which runs them in a loop, so evaluation never recurses. Upstream's
behaviour is kept: some steps fail (then the cell is empty), others find nothing. A cell shows only
the first value and filters only distinguish none, one and several, so equal values are kept at most
twice; no path produces more values than the object has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from instar.base.offload import STEP, TooLargeForLoop

MOST_WORK = 1_000_000
"""Values visited for the cells of one row: more than an object can hold, and still fast."""
MOST_LIST_WORK = 4_000_000
"""Values visited for all rows of one response, beyond ``ROW_WORK`` for each."""
ROW_WORK = 1000
LOOP_WORK = 20_000
"""Values visited in the event loop; more are visited in a thread."""


class StepFailed(Exception):
    """A step failed; ``values`` are the values that upstream has found at that point."""

    def __init__(self, values: list[Any]) -> None:
        super().__init__()
        self.values = values


class TooMuchWork(Exception):
    """The work budget of a row or response is spent."""


class Work:
    """The work budget of the rows of one response. In the event loop the budget is small, and work
    beyond it is repeated in a thread."""

    __slots__ = ("_in_loop", "_pool", "_row", "left")

    def __init__(self) -> None:
        self._in_loop = STEP.brief
        self._pool = MOST_LIST_WORK
        self.left = self._row = LOOP_WORK if self._in_loop else MOST_WORK

    def done(self, amount: int) -> None:
        """Raises ``TooMuchWork``, or ``TooLargeForLoop`` in the event loop."""
        self.left -= amount
        if self.left < 0:
            raise TooLargeForLoop if self._in_loop else TooMuchWork

    def next_row(self) -> None:
        if not self._in_loop:
            spent = self._row - max(self.left, 0)
            self._pool = max(self._pool - max(spent - ROW_WORK, 0), 0)
            self.left = self._row = min(MOST_WORK, ROW_WORK + self._pool)


Step = Callable[[list[Any], Work], list[Any]]


def walk(steps: Sequence[Step], values: list[Any], work: Work) -> list[Any]:
    """Apply every step in turn. Raises ``StepFailed`` or ``TooMuchWork``."""
    for step in steps:
        work.done(1 + len(values))
        values = step(values, work)
    return values


def field(name: str) -> Step:
    """Return the step ``.name``: the members of that name, of the maps that have it."""

    def step(values: list[Any], work: Work) -> list[Any]:
        return [value[name] for value in values if isinstance(value, dict) and name in value]

    return step


def constant(shown: Any) -> Step:
    """Return a step that yields a number or a boolean for each value."""

    def step(values: list[Any], work: Work) -> list[Any]:
        return [shown] * len(values)

    return step


def text(shown: str) -> Step:
    """Return a step that yields a quoted text once."""

    def step(values: list[Any], work: Work) -> list[Any]:
        return [shown]

    return step


def unknown_word(values: list[Any], work: Work) -> list[Any]:
    raise StepFailed(values)


def every(values: list[Any], work: Work) -> list[Any]:
    out: list[Any] = []
    for value in values:
        out.extend(_children(value))
    work.done(len(out))
    return out


def descend(values: list[Any], work: Work) -> list[Any]:
    """Return each value and all containers below it, parents first."""
    out: list[Any] = []
    seen: dict[int, int] = {}
    waiting = list(reversed(values))
    while waiting:
        value = waiting.pop()
        work.done(1)
        times = seen.get(id(value), 0)
        if times == 2 or not isinstance(value, dict | list | str) or not value:
            continue
        seen[id(value)] = times + 1
        out.append(value)
        children = _children(value)
        work.done(len(children))
        waiting.extend(reversed(children))
    return out


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def items(start: int | None, stop: int | None, stride: int | None, *, single: bool) -> Step:
    """Return the step ``[start:stop:stride]``; ``single`` for ``[start]``, where ``stop`` is
    ``start + 1``."""

    def step(values: list[Any], work: Work) -> list[Any]:
        out: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise StepFailed(values)
            bounds = _bounds(start, stop, len(value), single=single)
            if bounds is None:
                raise StepFailed(values)
            if bounds[0] == bounds[1]:
                return out
            if stride is not None and stride <= 0:
                raise StepFailed(values)
            out.extend(value[bounds[0] : bounds[1] : stride])
        work.done(len(out))
        return out

    return step


def _bounds(
    start: int | None, stop: int | None, length: int, *, single: bool
) -> tuple[int, int] | None:
    """Return both ends counted from the front; None when they are outside the list or reversed."""
    first = 0 if start is None else start
    first = first + length if first < 0 else first
    last = length if stop is None else stop
    last = last + length if last < 0 or (last == 0 and single) else last
    if first == last:
        return first, last
    return (first, last) if 0 <= first < last <= length else None


def union(branches: Sequence[Sequence[Step]]) -> Step:
    def step(values: list[Any], work: Work) -> list[Any]:
        out: list[Any] = []
        for branch in branches:
            try:
                out.extend(walk(branch, values, work))
            except StepFailed:
                raise StepFailed(values) from None
        return _at_most_two_equal(out)

    return step


def _at_most_two_equal(values: Iterable[Any]) -> list[Any]:
    out: list[Any] = []
    seen: dict[int, int] = {}
    for value in values:
        times = seen.get(id(value), 0)
        if times < 2:
            seen[id(value)] = times + 1
            out.append(value)
    return out


def existing(path: Sequence[Step]) -> Step:
    """Return a filter for items in which ``path`` finds something; of a failed path, the values
    found before the failure count."""

    def keep(item: Any, work: Work) -> bool:
        try:
            return bool(walk(path, [item], work))
        except StepFailed as failure:
            return bool(failure.values)

    return _filter(keep)


def comparing(left: Sequence[Step], operator: str, right: Sequence[Step]) -> Step:
    """Return a filter for items where both sides are one value each and the comparison holds."""
    compare = _OPERATORS.get(operator)

    def keep(item: Any, work: Work) -> bool:
        here = walk(left, [item], work)
        if not here:
            return False
        there = walk(right, [item], work) if len(here) == 1 else here
        if len(here) > 1 or len(there) > 1:
            raise StepFailed([item])
        if not there:
            return False
        if compare is None or not _comparable(here[0], there[0], operator):
            raise StepFailed([item])
        return compare(here[0], there[0])

    return _filter(keep)


def _filter(keep: Callable[[Any, Work], bool]) -> Step:
    def step(values: list[Any], work: Work) -> list[Any]:
        out: list[Any] = []
        for value in values:
            if not isinstance(value, list):
                raise StepFailed(values)
            work.done(len(value))
            try:
                out.extend(item for item in value if keep(item, work))
            except StepFailed:
                raise StepFailed(values) from None
        return out

    return step


def _comparable(left: Any, right: Any, operator: str) -> bool:
    """Return whether both values have the same scalar type; int and float differ, as in Go."""
    if left.__class__ is not right.__class__ or not isinstance(left, str | int | float):
        return False
    return operator in ("==", "!=") or not isinstance(left, bool)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}
