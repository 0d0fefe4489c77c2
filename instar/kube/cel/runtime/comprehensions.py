"""Loops of macros (``all``, ``exists``, ``map``, ``filter`` …) over lists and maps, with their
cost.

Built by ``interpreter.py``. Each iteration is charged before it runs, as in upstream's fold:
reading the accumulator, evaluating the loop condition, adding to the result. An error does not end
a loop: it becomes the accumulator, and the remaining iterations still run and are charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from instar.kube.cel.equality import lookup
from instar.kube.cel.functions import LIST_COST
from instar.kube.cel.go_text import show_key
from instar.kube.cel.runtime.frame import NEXT_CHECK, SPENT, Frame, Step, checkpoint
from instar.kube.cel.syntax.ast import Macro
from instar.kube.cel.values import (
    MISSING,
    CelError,
    ListValue,
    MapValue,
    NoSuchOverload,
    ObjectValue,
    is_map,
)


class LoopPart(NamedTuple):
    """A predicate or a body: its closure, its static cost, and whether it is a constant."""

    step: Step
    cost: int
    constant: bool = False


Builder = Callable[[Step, tuple[int, ...], LoopPart | None, LoopPart | None], Step]
ENTRY_COST = {**dict.fromkeys(Macro, 1), Macro.EXISTS_ONE: 2}
"""Cost of reading the result once; ``exists_one`` also compares it."""
_TURN = {Macro.ALL: 3, Macro.EXISTS: 4}
_LAST_LOOK = {Macro.ALL: 2, Macro.EXISTS: 3}
"""A loop that ends early evaluates its condition once more, unless it has reached the end."""


def _iterations(value: Any, slots: tuple[int, ...], frame: Frame) -> Iterator[CelError | None]:
    """Set the loop variables for each iteration; yield the error of an element that does not fit
    its type."""
    if len(slots) == 2:
        return _pair_iterations(value, slots, frame)
    if type(value) is ListValue:
        return _list_iterations(value, slots[0], frame)
    return _single_iterations(value, slots[0], frame)


def _list_iterations(value: ListValue, slot: int, frame: Frame) -> Iterator[CelError | None]:
    element = value.declared.element
    assert element is not None
    plain, convert = element.plain, element.convert
    for raw in value.raw:
        if type(raw) is plain:
            frame[slot] = raw
            yield None
            continue
        try:
            frame[slot] = convert(raw)
        except CelError as error:
            yield error
        else:
            yield None


def _single_iterations(value: Any, slot: int, frame: Frame) -> Iterator[CelError | None]:
    for item in _single(value):
        frame[slot] = item
        yield None


def _pair_iterations(value: Any, slots: tuple[int, ...], frame: Frame) -> Iterator[CelError | None]:
    first, second = slots
    for key, raw, convert in _pairs(value):
        frame[first] = key
        try:
            frame[second] = raw if convert is None else convert(raw)
        except CelError as error:
            yield error
        else:
            yield None


def _single(value: Any) -> list[Any]:
    """Return the elements of a list or keys of a map."""
    if type(value) is list:
        return value
    if is_map(value):
        return list(value.raw if type(value) is MapValue else value)
    if type(value) is ObjectValue:
        return [name for name, _ in value.items()]
    raise CelError(f"got '{type(value).__name__}', expected iterable type")


def _pairs(value: Any) -> Iterator[tuple[Any, Any, Callable[[Any], Any] | None]]:
    """Yield index and element, or key and value, with a converter for raw values."""
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


def _loop_range(source: Step, entry: int, frame: Frame) -> Any:
    try:
        return source(frame)
    except CelError:
        frame[SPENT] -= entry
        raise


def _charge(frame: Frame, cost: int) -> None:
    frame[SPENT] += cost
    if frame[SPENT] > frame[NEXT_CHECK]:
        checkpoint(frame)


def _quantifier(macro: Macro, decisive: bool) -> Builder:
    """Build ``all`` (decided by False) and ``exists`` (by True); an error counts only if
    undecided."""
    last_look, entry = _LAST_LOOK[macro], ENTRY_COST[macro]

    def build(
        source: Step, slots: tuple[int, ...], condition: LoopPart | None, _body: LoopPart | None
    ) -> Step:
        assert condition is not None
        predicate, turn = condition.step, condition.cost + _TURN[macro]

        def run(frame: Frame) -> bool:
            failure: CelError | None = None
            turns = _iterations(_loop_range(source, entry, frame), slots, frame)
            for misfit in turns:
                frame[SPENT] += turn
                if frame[SPENT] > frame[NEXT_CHECK]:
                    checkpoint(frame)
                try:
                    if misfit is not None:
                        raise misfit
                    value: object = predicate(frame)
                    if value is decisive:
                        if next(turns, MISSING) is not MISSING:
                            frame[SPENT] += last_look
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


def _on_error(
    turns: Iterator[CelError | None],
    failure: CelError,
    frame: Frame,
    parts: tuple[LoopPart | None, LoopPart | None],
    kept_cost: int,
) -> NoReturn:
    """Run the rest of a loop that already has an error: it is charged, and a later predicate
    error replaces the first."""
    predicate, body = parts
    for misfit in turns:
        try:
            if predicate is not None:
                _charge(frame, predicate.cost)
                if misfit is not None:
                    raise misfit
                if not _holds(predicate.step, frame):
                    continue
        except CelError as error:
            failure = error
            continue
        _charge(frame, kept_cost)
        if body is not None:
            with suppress(CelError):
                body.step(frame)
    raise failure


def _passing_iterations(
    turns: Iterator[CelError | None], predicate: Step, tested: int, kept: int, frame: Frame
) -> Iterator[None]:
    """Yield the iterations that pass the predicate; each is charged for the test, and for being
    kept."""
    for misfit in turns:
        frame[SPENT] += tested
        if frame[SPENT] > frame[NEXT_CHECK]:
            checkpoint(frame)
        if misfit is not None:
            raise misfit
        value = predicate(frame)
        if value is True:
            frame[SPENT] += kept
            yield
        elif value is not False:
            raise NoSuchOverload


def _unfiltered_iterations(
    turns: Iterator[CelError | None], kept: int, frame: Frame
) -> Iterator[None]:
    for misfit in turns:
        frame[SPENT] += kept
        if frame[SPENT] > frame[NEXT_CHECK]:
            checkpoint(frame)
        if misfit is not None:
            raise misfit
        yield


def _collecting_loop(
    macro: Macro,
    own_cost: int,
    collect: Callable[[Iterator[None], Frame, int, Step | None], Any],
    *,
    stops: bool = False,
) -> Builder:
    """Build a loop that collects the passing iterations. ``stops``: after an error, bodies are not
    evaluated."""
    entry = ENTRY_COST[macro]

    def build(
        source: Step, slots: tuple[int, ...], condition: LoopPart | None, body: LoopPart | None
    ) -> Step:
        predicate = None if condition is None else condition.step
        tested = 0 if condition is None else condition.cost
        make = None if body is None else body.step
        kept = own_cost + (0 if body is None else body.cost)
        if macro is Macro.MAP and body is not None and body.constant:
            kept = own_cost - LIST_COST
        after = (condition, None) if stops else (condition, body)
        slot = slots[0]

        def run(frame: Frame) -> Any:
            turns = _iterations(_loop_range(source, entry, frame), slots, frame)
            if predicate is None:
                passed = _unfiltered_iterations(turns, kept, frame)
            else:
                passed = _passing_iterations(turns, predicate, tested, kept, frame)
            try:
                return collect(passed, frame, slot, make)
            except CelError as error:
                _on_error(turns, error, frame, after, 1 if stops else kept)

        return run

    return build


def _holds(predicate: Step, frame: Frame) -> bool:
    value = predicate(frame)
    if value is True or value is False:
        return value
    raise NoSuchOverload


def _exactly_one(passed: Iterator[None], _frame: Frame, _slot: int, _make: Step | None) -> bool:
    return sum(1 for _ in passed) == 1


def _elements(passed: Iterator[None], frame: Frame, slot: int, _make: Step | None) -> list[Any]:
    return [frame[slot] for _ in passed]


def _mapped(passed: Iterator[None], frame: Frame, _slot: int, make: Step | None) -> list[Any]:
    assert make is not None
    return [make(frame) for _ in passed]


def _by_key(passed: Iterator[None], frame: Frame, slot: int, make: Step | None) -> dict[Any, Any]:
    assert make is not None
    out: dict[Any, Any] = {}
    for _ in passed:
        _put_new(out, frame[slot], make(frame))
    return out


def _merged(passed: Iterator[None], frame: Frame, _slot: int, make: Step | None) -> dict[Any, Any]:
    assert make is not None
    out: dict[Any, Any] = {}
    for _ in passed:
        for name, value in make(frame).items():
            _put_new(out, name, value)
    return out


def _put_new(out: dict[Any, Any], name: Any, value: Any) -> None:
    if lookup(out, name) is not MISSING:
        raise CelError(f"insert failed: key {show_key(name)} already exists")
    out[name] = value


BUILDERS: dict[Macro, Builder] = {
    Macro.ALL: _quantifier(Macro.ALL, False),
    Macro.EXISTS: _quantifier(Macro.EXISTS, True),
    Macro.EXISTS_ONE: _collecting_loop(Macro.EXISTS_ONE, 2, _exactly_one),
    Macro.FILTER: _collecting_loop(Macro.FILTER, 3 + LIST_COST, _elements),
    Macro.MAP: _collecting_loop(Macro.MAP, 2 + LIST_COST, _mapped),
    Macro.TRANSFORM_MAP: _collecting_loop(Macro.TRANSFORM_MAP, 3, _by_key, stops=True),
    Macro.TRANSFORM_ENTRY: _collecting_loop(Macro.TRANSFORM_ENTRY, 2, _merged),
}
