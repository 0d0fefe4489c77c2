"""Loops over lists and maps. Each turn is charged before it runs: no loop outlives its budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from instar.cel.ast import Macro
from instar.cel.frame import NEXT_CHECK, SPENT, Frame, Step, checkpoint
from instar.cel.values import (
    CelError,
    ListValue,
    MapValue,
    NoSuchOverload,
    is_map,
)

Part = tuple[Step, float] | None
Builder = Callable[[Step, tuple[int, ...], Part, Part], Step]

# What a macro costs besides range, predicate and body. Estimates count the empty list or map a
# result is built in, and assume the dearer branch; a run pays only for what it does.
ESTIMATED_ENTRY = {
    Macro.ALL: 1,
    Macro.EXISTS: 1,
    Macro.EXISTS_ONE: 2,
    Macro.FILTER: 11,
    Macro.MAP: 11,
    Macro.TRANSFORM_MAP: 31,
    Macro.TRANSFORM_ENTRY: 31,
}
ESTIMATED_TURN = {
    Macro.ALL: 3,
    Macro.EXISTS: 4,
    Macro.EXISTS_ONE: 2,
    Macro.FILTER: 13,
    Macro.MAP: 12,
    Macro.TRANSFORM_MAP: 3,
    Macro.TRANSFORM_ENTRY: 3,
}
ENTRY_COST = {**dict.fromkeys(Macro, 1), Macro.EXISTS_ONE: 2}
_TURN = {Macro.ALL: 3, Macro.EXISTS: 4}
_LAST_LOOK = {Macro.ALL: 2, Macro.EXISTS: 3}
"""A loop that ends early asks its condition once more."""
_KEPT = ESTIMATED_TURN
"""Paid for an element that passed the filter."""


def _turns(value: Any, two: bool) -> Iterable[Any]:
    """Single elements (or keys), or pairs of index and element (or key and value)."""
    if type(value) is ListValue:
        element = value.declared.element
        assert element is not None
        items: Iterable[Any] = map(element.convert, value.raw)
        return enumerate(items) if two else items
    if type(value) is list:
        return enumerate(value) if two else value
    if is_map(value):
        if two:
            return list(value.items())
        return list(value.raw if type(value) is MapValue else value)
    raise NoSuchOverload


def _loop(
    source: Step, slots: tuple[int, ...], turn_cost: float
) -> Callable[[Frame], Iterable[None]]:
    """Yields once per element with the loop variables set and the turn paid for."""
    first = slots[0]
    second = slots[1] if len(slots) == 2 else None

    def loop(frame: Frame) -> Iterable[None]:
        for item in _turns(source(frame), second is not None):
            frame[SPENT] += turn_cost
            if frame[SPENT] > frame[NEXT_CHECK]:
                checkpoint(frame)
            if second is None:
                frame[first] = item
            else:
                frame[first], frame[second] = item
            yield

    return loop


def _quantifier(macro: Macro, decisive: bool) -> Builder:
    """``all`` (decided by False) and ``exists`` (by True); an error counts only if undecided."""

    def build(source: Step, slots: tuple[int, ...], condition: Part, _body: Part) -> Step:
        assert condition is not None
        predicate, cost = condition
        loop = _loop(source, slots, cost + _TURN[macro])

        last_look = _LAST_LOOK[macro]

        def run(frame: Frame) -> bool:
            failure: CelError | None = None
            for _ in loop(frame):
                try:
                    if _holds(predicate, frame) is decisive:
                        frame[SPENT] += last_look
                        return decisive
                except CelError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            return not decisive

        return run

    return build


def _kept(
    source: Step, slots: tuple[int, ...], condition: Part, kept_cost: float
) -> Callable[[Frame], Iterable[None]]:
    """Yields for each element that passes the filter, and charges for keeping it."""
    if condition is None:
        return _loop(source, slots, kept_cost)
    predicate, cost = condition
    loop = _loop(source, slots, cost)

    def kept(frame: Frame) -> Iterable[None]:
        for _ in loop(frame):
            if _holds(predicate, frame):
                frame[SPENT] += kept_cost
                yield

    return kept


def _exists_one(source: Step, slots: tuple[int, ...], condition: Part, _body: Part) -> Step:
    kept = _kept(source, slots, condition, _KEPT[Macro.EXISTS_ONE])
    return lambda frame: sum(1 for _ in kept(frame)) == 1


def _filter(source: Step, slots: tuple[int, ...], condition: Part, _body: Part) -> Step:
    kept = _kept(source, slots, condition, _KEPT[Macro.FILTER])
    slot = slots[0]
    return lambda frame: [frame[slot] for _ in kept(frame)]


def _map(source: Step, slots: tuple[int, ...], condition: Part, body: Part) -> Step:
    assert body is not None
    build, cost = body
    kept = _kept(source, slots, condition, cost + _KEPT[Macro.MAP])
    return lambda frame: [build(frame) for _ in kept(frame)]


def _transform_map(source: Step, slots: tuple[int, ...], condition: Part, body: Part) -> Step:
    assert body is not None
    build, cost = body
    kept = _kept(source, slots, condition, cost + _KEPT[Macro.TRANSFORM_MAP])
    key = slots[0]

    def run(frame: Frame) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for _ in kept(frame):
            out[frame[key]] = build(frame)
        return out

    return run


def _transform_entry(source: Step, slots: tuple[int, ...], condition: Part, body: Part) -> Step:
    assert body is not None
    build, cost = body
    kept = _kept(source, slots, condition, cost + _KEPT[Macro.TRANSFORM_ENTRY])

    def run(frame: Frame) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for _ in kept(frame):
            for name, value in build(frame).items():
                if name in out:
                    raise CelError(f"insert failed: key {name} already exists")
                out[name] = value
        return out

    return run


def _holds(predicate: Step, frame: Frame) -> bool:
    value = predicate(frame)
    if value is True or value is False:
        return value
    raise NoSuchOverload


BUILDERS: dict[Macro, Builder] = {
    Macro.ALL: _quantifier(Macro.ALL, False),
    Macro.EXISTS: _quantifier(Macro.EXISTS, True),
    Macro.EXISTS_ONE: _exists_one,
    Macro.FILTER: _filter,
    Macro.MAP: _map,
    Macro.TRANSFORM_MAP: _transform_map,
    Macro.TRANSFORM_ENTRY: _transform_entry,
}
