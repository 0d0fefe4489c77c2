"""Loops over lists and maps. Each turn is charged before it runs: no loop outlives its budget.

What a turn costs is what upstream's fold costs: reading the accumulator, asking whether to go on,
adding to the result. An error does not end a loop; it becomes the accumulator, and the turns after
it are still made and paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from instar.cel.ast import Macro
from instar.cel.equality import lookup
from instar.cel.frame import NEXT_CHECK, SPENT, Frame, Step, checkpoint
from instar.cel.functions import LIST_COST
from instar.cel.texts import shown
from instar.cel.values import (
    MISSING,
    CelError,
    ListValue,
    MapValue,
    NoSuchOverload,
    ObjectValue,
    is_map,
)


class Part(NamedTuple):
    """A predicate or a body: its closure, its static cost, and whether it is a constant."""

    step: Step
    cost: int
    constant: bool = False


Builder = Callable[[Step, tuple[int, ...], Part | None, Part | None], Step]
ENTRY_COST = {**dict.fromkeys(Macro, 1), Macro.EXISTS_ONE: 2}
"""The result is read once; ``exists_one`` also compares it."""
_TURN = {Macro.ALL: 3, Macro.EXISTS: 4}
_LAST_LOOK = {Macro.ALL: 2, Macro.EXISTS: 3}
"""A loop that ends early asks its condition once more, unless nothing is left."""
_COUNTED = 2
_KEPT = 3 + LIST_COST
_INSERTED = 3
_MERGED = 2


def _turns(value: Any, slots: tuple[int, ...], frame: Frame) -> Iterator[CelError | None]:
    """Sets the loop variables; yields the error of an element that does not fit its type."""
    if len(slots) == 1:
        slot = slots[0]
        if type(value) is ListValue:
            converted = value.declared.convert_element
            for raw in value.raw:
                failure = None
                try:
                    frame[slot] = converted(raw)
                except CelError as error:
                    failure = error
                yield failure
        else:
            for item in _single(value):
                frame[slot] = item
                yield None
        return
    first, second = slots
    for key, raw, convert in _pairs(value):
        frame[first], failure = key, None
        try:
            frame[second] = raw if convert is None else convert(raw)
        except CelError as error:
            failure = error
        yield failure


def _single(value: Any) -> list[Any]:
    """Elements of a list, keys of a map."""
    if type(value) is list:
        return value
    if is_map(value):
        return list(value.raw if type(value) is MapValue else value)
    if type(value) is ObjectValue:
        return [name for name, _ in value.items()]
    raise CelError(f"got '{type(value).__name__}', expected iterable type")


def _pairs(value: Any) -> Iterator[tuple[Any, Any, Callable[[Any], Any] | None]]:
    """Index and element, or key and value; the second still to be converted where it is raw."""
    if type(value) is ListValue:
        return ((i, raw, value.declared.convert_element) for i, raw in enumerate(value.raw))
    if type(value) is list:
        return ((i, item, None) for i, item in enumerate(value))
    if type(value) is MapValue:
        items = list(value.raw.items())
        return ((name, raw, value.declared.convert_element) for name, raw in items)
    if type(value) is dict or type(value) is ObjectValue:
        return ((name, item, None) for name, item in list(value.items()))
    raise CelError(f"unsupported comprehension range type: {type(value).__name__}")


def _opened(source: Step, entry: int, frame: Frame) -> Any:
    try:
        return source(frame)
    except CelError:
        frame[SPENT] -= entry
        raise


def _pay(frame: Frame, cost: int) -> None:
    frame[SPENT] += cost
    if frame[SPENT] > frame[NEXT_CHECK]:
        checkpoint(frame)


def _quantifier(macro: Macro, decisive: bool) -> Builder:
    """``all`` (decided by False) and ``exists`` (by True); an error counts only if undecided."""
    last_look, entry = _LAST_LOOK[macro], ENTRY_COST[macro]

    def build(
        source: Step, slots: tuple[int, ...], condition: Part | None, _body: Part | None
    ) -> Step:
        assert condition is not None
        predicate, turn = condition.step, condition.cost + _TURN[macro]

        def run(frame: Frame) -> bool:
            failure: CelError | None = None
            turns = _turns(_opened(source, entry, frame), slots, frame)
            for misfit in turns:
                frame[SPENT] += turn
                if frame[SPENT] > frame[NEXT_CHECK]:
                    checkpoint(frame)
                try:
                    if misfit is not None:
                        raise misfit
                    value: object = predicate(frame)
                    if value is decisive:
                        for _ in turns:
                            frame[SPENT] += last_look
                            break
                        return decisive
                    if type(value) is not bool:
                        raise NoSuchOverload
                except CelError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            return not decisive

        return run

    return build


class _Collector(NamedTuple):
    """How a macro gathers: what it starts with, what a kept element costs and does to it."""

    start: Callable[[], Any]
    add: Callable[[Any, Any, Frame, tuple[int, ...]], Any]
    cost: int
    stops: bool = False
    """Once there is an error, kept elements are not computed any more."""


def _collecting(macro: Macro, how: _Collector, finish: Callable[[Any], Any]) -> Builder:
    entry = ENTRY_COST[macro]

    def build(
        source: Step, slots: tuple[int, ...], condition: Part | None, body: Part | None
    ) -> Step:
        predicate = None if condition is None else condition.step
        make = None if body is None else body.step
        asked = 0 if condition is None else condition.cost
        kept = how.cost + (0 if body is None else body.cost)
        if macro is Macro.MAP and body is not None and body.constant:
            kept = how.cost - LIST_COST

        def run(frame: Frame) -> Any:
            out, failure = how.start(), None
            for misfit in _turns(_opened(source, entry, frame), slots, frame):
                _pay(frame, asked)
                if predicate is not None:
                    try:
                        if misfit is not None:
                            raise misfit
                        if not _holds(predicate, frame):
                            continue
                    except CelError as error:
                        failure = error
                        continue
                if failure is not None and how.stops:
                    frame[SPENT] += 1
                    continue
                frame[SPENT] += kept
                try:
                    if misfit is not None:
                        raise misfit
                    item = None if make is None else make(frame)
                    if failure is None:
                        out = how.add(out, item, frame, slots)
                except CelError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            return finish(out)

        return run

    return build


def _holds(predicate: Step, frame: Frame) -> bool:
    value = predicate(frame)
    if type(value) is bool:
        return value
    raise NoSuchOverload


def _count(out: int, _item: Any, _frame: Frame, _slots: tuple[int, ...]) -> int:
    return out + 1


def _keep(out: list[Any], _item: Any, frame: Frame, slots: tuple[int, ...]) -> list[Any]:
    out.append(frame[slots[0]])
    return out


def _append(out: list[Any], item: Any, _frame: Frame, _slots: tuple[int, ...]) -> list[Any]:
    out.append(item)
    return out


def _insert(out: dict[Any, Any], item: Any, frame: Frame, slots: tuple[int, ...]) -> dict[Any, Any]:
    _put_new(out, frame[slots[0]], item)
    return out


def _merge(
    out: dict[Any, Any], item: Any, _frame: Frame, _slots: tuple[int, ...]
) -> dict[Any, Any]:
    for name, value in item.items():
        _put_new(out, name, value)
    return out


def _put_new(out: dict[Any, Any], name: Any, value: Any) -> None:
    if lookup(out, name) is not MISSING:
        raise CelError(f"insert failed: key {shown(name)} already exists")
    out[name] = value


def _as_is(out: Any) -> Any:
    return out


BUILDERS: dict[Macro, Builder] = {
    Macro.ALL: _quantifier(Macro.ALL, False),
    Macro.EXISTS: _quantifier(Macro.EXISTS, True),
    Macro.EXISTS_ONE: _collecting(
        Macro.EXISTS_ONE, _Collector(int, _count, _COUNTED), lambda count: count == 1
    ),
    Macro.FILTER: _collecting(Macro.FILTER, _Collector(list, _keep, _KEPT), _as_is),
    Macro.MAP: _collecting(Macro.MAP, _Collector(list, _append, 2 + LIST_COST), _as_is),
    Macro.TRANSFORM_MAP: _collecting(
        Macro.TRANSFORM_MAP, _Collector(dict, _insert, _INSERTED, stops=True), _as_is
    ),
    Macro.TRANSFORM_ENTRY: _collecting(
        Macro.TRANSFORM_ENTRY, _Collector(dict, _merge, _MERGED), _as_is
    ),
}
