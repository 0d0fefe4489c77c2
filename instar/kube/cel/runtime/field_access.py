"""Closures for variables, fields, keys and indexes, plain and optional, and for literals.

Built by ``interpreter.py``; the hot path of every rule. A failing step keeps its own cost, and the
cost of the steps after it is refunded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from instar.kube.cel.declared_types import DeclaredField
from instar.kube.cel.equality import find, not_there
from instar.kube.cel.go_text import go_name, show_key
from instar.kube.cel.runtime.frame import SPENT, Frame, Step
from instar.kube.cel.types import CelKind
from instar.kube.cel.values import (
    FLAGS,
    MISSING,
    NONE,
    CelError,
    ObjectValue,
    OptionalValue,
    StructValue,
    Uint,
    type_name,
)

KEYS = frozenset((str, int, Uint, bool, float))
"""Types that may be used as an index."""

_SHAPES: dict[CelKind, type] = {CelKind.OBJECT: dict, CelKind.MAP: dict, CelKind.LIST: list}


def constant(value: Any) -> Step:
    """Return a step with a fixed value."""
    return lambda _frame: value


def variable(slot: int) -> Step:
    return lambda frame: frame[slot]


def bound(slot: int, value: Step, cost: int) -> Step:
    """Return a bound name (``cel.bind``): its value or error is computed on first read and
    cached."""

    def run(frame: Frame) -> Any:
        held = frame[slot]
        if held is None:
            frame[SPENT] += cost
            try:
                held = (value(frame), None)
            except CelError as error:
                held = (None, error)
            frame[slot] = held
        found, failure = held
        if failure is not None:
            raise failure.with_traceback(None)
        return found

    return run


def clear_slot_before(slot: int, body: Step) -> Step:
    """Clear a bound name before its body, because an enclosing loop may have set it."""

    def run(frame: Frame) -> Any:
        frame[slot] = None
        return body(frame)

    return run


def store_in_slot(slot: int, value: Step) -> Step:
    """Evaluate a value that is read twice, and store it with its cost for ``load_from_slot``."""

    def run(frame: Frame) -> Any:
        before = frame[SPENT]
        found = value(frame)
        frame[slot] = (found, frame[SPENT] - before)
        return found

    return run


def load_from_slot(slot: int) -> Step:
    """Return the value that ``store_in_slot`` stored, and charge its cost a second time."""

    def run(frame: Frame) -> Any:
        found, cost = frame[slot]
        frame[SPENT] += cost
        return found

    return run


def field(operand: Step, shown: str, declared: DeclaredField) -> Step:
    """Return the access to a declared field; ``shown`` is its name in error messages."""
    name, plain, convert = declared.name, declared.declared.plain, declared.declared.convert

    def run(frame: Frame) -> Any:
        try:
            value = operand(frame)
        except CelError:
            frame[SPENT] -= 1
            raise
        if type(value) is not ObjectValue:
            return select(value, shown, frame)
        raw = value.raw.get(name)
        if type(raw) is plain:
            return raw
        if raw is None:
            raise CelError(f"no such key: {shown}")
        return convert(raw)

    return run


def variable_field(slot: int, shown: str, declared: DeclaredField) -> Step:
    """Return ``field`` of a variable without a nested call: the most common step."""
    name, plain, convert = declared.name, declared.declared.plain, declared.declared.convert

    def run(frame: Frame) -> Any:
        value = frame[slot]
        if type(value) is not ObjectValue:
            return select(value, shown, frame)
        raw = value.raw.get(name)
        if type(raw) is plain:
            return raw
        if raw is None:
            raise CelError(f"no such key: {shown}")
        return convert(raw)

    return run


def has_field(operand: Step, shown: str, declared: DeclaredField) -> Step:
    """Return ``has()`` of a declared field. Upstream converts the value, so data that does not
    fit is an error."""
    name, convert = declared.name, declared.declared.convert
    plain = declared.declared.plain or _SHAPES.get(declared.declared.type.kind)

    def run(frame: Frame) -> bool:
        try:
            value = operand(frame)
        except CelError:
            frame[SPENT] -= 1
            raise
        if type(value) is not ObjectValue:
            return has(value, shown, frame)
        raw = value.raw.get(name)
        if raw is None:
            return False
        if type(raw) is not plain:
            convert(raw)
        return True

    return run


def select(value: Any, key: Any, frame: Frame) -> Any:
    """Return ``value.key`` or ``value[key]``, charged; for an optional the result is an
    optional."""
    if type(value) is OptionalValue:
        frame[SPENT] -= 1
        return optional_select(value, key, frame)
    found = find(value, key)
    if found is MISSING:
        if type(key) not in KEYS:
            raise CelError(f"invalid qualifier type: {go_name(key)}")
        raise not_there(value, key)
    return found


def optional_select(value: Any, key: Any, frame: Frame) -> OptionalValue:
    """Return ``value[?key]``; only a found value is charged."""
    if type(value) is OptionalValue:
        if not value.present:
            return NONE
        value = value.content
    found = find(value, key)
    if found is MISSING:
        return NONE
    frame[SPENT] += 1
    return OptionalValue(True, found)


def has(value: Any, name: str, frame: Frame) -> bool:
    """Return the result of the macro ``has``; an absent optional costs one unit less."""
    if type(value) is OptionalValue:
        found = value.present and find(value.content, name) is not MISSING
        frame[SPENT] -= not found
        return found
    return find(value, name) is not MISSING


def select_dynamic(operand: Step, key: Any) -> Step:
    """Return a field or constant index of a value without declared fields."""

    def run(frame: Frame) -> Any:
        try:
            value = operand(frame)
        except CelError:
            frame[SPENT] -= 1
            raise
        return select(value, key, frame)

    return run


def has_selected(operand: Step, name: str) -> Step:
    def run(frame: Frame) -> bool:
        try:
            value = operand(frame)
        except CelError:
            frame[SPENT] -= 1
            raise
        return has(value, name, frame)

    return run


def select_optional_member(operand: Step, name: str, *, test: bool) -> Step:
    """Return a field of an optional inside a map, which upstream does not unwrap."""

    def run(frame: Frame) -> bool:
        try:
            operand(frame)
        except CelError:
            frame[SPENT] -= 1
            raise
        if test:
            return False
        raise CelError(f"no such key: {name}")

    return run


def index_container(container: Step, key: Step, key_cost: int) -> Step:
    refund = key_cost + 1

    def run(frame: Frame) -> Any:
        try:
            held = container(frame)
        except CelError:
            frame[SPENT] -= refund
            raise
        if type(held) is OptionalValue:
            frame[SPENT] -= refund
            return _optional_index(held, key, key_cost, frame)
        return select(held, key(frame), frame)

    return run


def optional_field(operand: Step, name: str) -> Step:
    return lambda frame: optional_select(operand(frame), name, frame)


def optional_index(container: Step, key: Step, key_cost: int) -> Step:
    return lambda frame: _optional_index(container(frame), key, key_cost, frame)


def _optional_index(held: Any, key: Step, key_cost: int, frame: Frame) -> OptionalValue:
    if type(held) is OptionalValue and not held.present:
        return NONE
    frame[SPENT] += key_cost
    return optional_select(held, key(frame), frame)


def make_list(items: Sequence[Step], costs: Sequence[int], optional: frozenset[int]) -> Step:
    def run(frame: Frame) -> list[Any]:
        out: list[Any] = []
        try:
            for position, item in enumerate(items):
                value = item(frame)
                if position not in optional:
                    out.append(value)
                elif type(value) is not OptionalValue:
                    text = "cannot initialize optional list element from non-optional value"
                    raise CelError(f"{text} {show_key(value)}")
                elif value.present:
                    out.append(value.content)
        except CelError:
            frame[SPENT] -= sum(costs[position + 1 :])
            raise
        return out

    if optional:
        return run

    def plain(frame: Frame) -> list[Any]:
        out: list[Any] = []
        try:
            out.extend(item(frame) for item in items)
        except CelError:
            frame[SPENT] -= sum(costs[len(out) + 1 :])
            raise
        return out

    return plain


def make_map(entries: Sequence[tuple[Step, Step, bool]], costs: Sequence[int], mixed: bool) -> Step:
    """Return a map literal. ``mixed``: keys have several types, which only ``format`` allows."""

    def run(frame: Frame) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        done = 0
        try:
            for key_step, value_step, optional in entries:
                key = key_step(frame)
                done += 1
                value = value_step(frame)
                done += 1
                _put(out, key, value, optional, mixed)
        except CelError:
            frame[SPENT] -= sum(costs[done + 1 :])
            raise
        return out

    return run


def _put(out: dict[Any, Any], key: Any, value: Any, optional: bool, flags: bool = False) -> None:
    if optional:
        if type(value) is not OptionalValue:
            text = f"cannot initialize optional entry '{show_key(key)}' from non-optional value"
            raise CelError(f"{text} {show_key(value)}")
        if not value.present:
            out.pop(key, None)
            return
        value = value.content
    try:
        out[FLAGS[key] if flags and type(key) is bool else key] = value
    except TypeError:
        raise CelError(f"unsupported map key type: {type_name(key)}") from None


def make_struct(
    cel_type: str, fields: Sequence[tuple[str, Step, bool]], costs: Sequence[int]
) -> Step:
    """Return an object of a named type; its fields are CEL values, not raw JSON."""

    def run(frame: Frame) -> StructValue:
        out: dict[Any, Any] = {}
        done = 0
        try:
            for name, step, optional in fields:
                _put(out, name, step(frame), optional)
                done += 1
        except CelError:
            frame[SPENT] -= sum(costs[done + 1 :])
            raise
        return StructValue(out, cel_type)

    return run
