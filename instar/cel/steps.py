"""The closures an expression is made of. Small on purpose: this is the hot path of every write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from instar.cel.declared import Field
from instar.cel.equality import contains, equal, index
from instar.cel.frame import NEXT_CHECK, SPENT, Frame, Step, checkpoint
from instar.cel.functions import Overload, Work, smaller_of
from instar.cel.values import (
    NONE,
    CelError,
    ListValue,
    MapValue,
    NoSuchOverload,
    ObjectValue,
    OptionalValue,
    is_list,
    size_of,
)

_CONTAINERS = frozenset((list, dict, ListValue, MapValue, ObjectValue))
_GROWING = frozenset((str, bytes, list, dict))
_NESTED = frozenset((dict, list))
_LARGE = 1000
_UNFIT = (TypeError, AttributeError)


def constant(value: Any) -> Step:
    return lambda _frame: value


def variable(slot: int) -> Step:
    return lambda frame: frame[slot]


def field(operand: Step, shown: str, declared: Field) -> Step:
    name, plain, convert = declared.name, declared.declared.plain, declared.declared.convert

    def run(frame: Frame) -> Any:
        value = operand(frame)
        if type(value) is not ObjectValue:
            return select(value, shown)
        raw = value.raw.get(name)
        if type(raw) is plain:
            return raw
        if raw is None:
            raise CelError(f"no such key: {shown}")
        return convert(raw)

    return run


def variable_field(slot: int, shown: str, declared: Field) -> Step:
    """``field`` of a variable: the most common step of all, without a call in between."""
    name, plain, convert = declared.name, declared.declared.plain, declared.declared.convert

    def run(frame: Frame) -> Any:
        value = frame[slot]
        if type(value) is not ObjectValue:
            return select(value, shown)
        raw = value.raw.get(name)
        if type(raw) is plain:
            return raw
        if raw is None:
            raise CelError(f"no such key: {shown}")
        return convert(raw)

    return run


def has_field(operand: Step, shown: str, declared: Field) -> Step:
    """Upstream converts what it looks at, so data that does not fit is an error here too."""
    name, plain, convert = declared.name, declared.declared.plain, declared.declared.convert

    def run(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is not ObjectValue:
            return has(value, shown)
        raw = value.raw.get(name)
        if raw is None:
            return False
        if type(raw) is not plain and type(raw) not in _NESTED:
            convert(raw)
        return True

    return run


def select(value: Any, name: str) -> Any:
    if type(value) is ObjectValue or type(value) is MapValue:
        return value.get(name)
    if type(value) is dict:
        if name in value:
            return value[name]
        raise CelError(f"no such key: {name}")
    if type(value) is OptionalValue:
        return _optional_select(value, name)
    raise NoSuchOverload


def has(value: Any, name: str) -> bool:
    if type(value) is ObjectValue:
        return value.has(name)
    if type(value) is MapValue:
        return name in value.raw
    if type(value) is dict:
        return name in value
    if type(value) is OptionalValue:
        return value.present and has(value.content, name)
    raise NoSuchOverload


def select_dynamic(operand: Step, name: str) -> Step:
    return lambda frame: select(operand(frame), name)


def has_dynamic(operand: Step, name: str) -> Step:
    return lambda frame: has(operand(frame), name)


def _optional_select(value: Any, name: str) -> OptionalValue:
    if type(value) is OptionalValue:
        if not value.present:
            return NONE
        value = value.content
    return OptionalValue(True, select(value, name)) if has(value, name) else NONE


def optional_select(operand: Step, name: str) -> Step:
    return lambda frame: _optional_select(operand(frame), name)


def _optional_index(container: Any, key: Any) -> OptionalValue:
    if type(container) is OptionalValue:
        if not container.present:
            return NONE
        container = container.content
    present = 0 <= key < size_of(container) if is_list(container) else contains(container, key)
    return OptionalValue(True, index(container, key)) if present else NONE


def optional_index(container: Step, key: Step) -> Step:
    return lambda frame: _optional_index(container(frame), key(frame))


def indexed(container: Step, key: Step) -> Step:
    def run(frame: Frame) -> Any:
        held = container(frame)
        if type(held) is OptionalValue:
            return _optional_index(held, key(frame))
        return index(held, key(frame))

    return run


def logical(left: Step, right: Step, right_cost: float, decisive: bool) -> Step:
    """``&&`` (decided by False) and ``||`` (decided by True); a decisive side absorbs an error."""

    def run(frame: Frame) -> Any:
        try:
            value = left(frame)
            if value is decisive:
                return decisive
            if type(value) is not bool:
                raise NoSuchOverload
        except CelError as error:
            frame[SPENT] += right_cost
            if _decided(right, frame, decisive):
                return decisive
            raise error from None
        frame[SPENT] += right_cost
        value = right(frame)
        if value is True or value is False:
            return value
        raise NoSuchOverload

    return run


def _decided(step: Step, frame: Frame, decisive: bool) -> bool:
    try:
        return step(frame) is decisive
    except CelError:
        return False


def choice(condition: Step, then: tuple[Step, float], otherwise: tuple[Step, float]) -> Step:
    then_step, then_cost = then
    else_step, else_cost = otherwise

    def run(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            frame[SPENT] += then_cost
            return then_step(frame)
        if value is False:
            frame[SPENT] += else_cost
            return else_step(frame)
        raise NoSuchOverload

    return run


def equals_text(left: Step, text: str, negated: bool) -> Step:
    def run(frame: Frame) -> bool:
        return (left(frame) == text) is not negated

    return run


def equals_scalar(left: Step, right: Step, negated: bool) -> Step:
    return lambda frame: equal(left(frame), right(frame)) is not negated


def equals(left: Step, right: Step, negated: bool) -> Step:
    def run(frame: Frame) -> bool:
        ours, theirs = left(frame), right(frame)
        frame[SPENT] += smaller_of(size_of(ours), size_of(theirs))
        # Comparing containers is priced by their length but takes as long as they are deep.
        if frame[SPENT] > frame[NEXT_CHECK] or type(ours) in _CONTAINERS:
            checkpoint(frame)
        return equal(ours, theirs) is not negated

    return run


def in_texts(value: Step, texts: frozenset[str]) -> Step:
    def run(frame: Frame) -> bool:
        sought = value(frame)
        return type(sought) is str and sought in texts

    return run


def contained(value: Step, container: Step) -> Step:
    def run(frame: Frame) -> bool:
        sought, held = value(frame), container(frame)
        frame[SPENT] += (size_of(held) if is_list(held) else 0) or 1
        if frame[SPENT] > frame[NEXT_CHECK]:
            checkpoint(frame)
        return contains(held, sought)

    return run


def call(impl: Callable[..., Any], arguments: Sequence[Step]) -> Step:
    """A null among nullable items has the static type of the others; it fits no overload."""

    def unary(frame: Frame) -> Any:
        value = one(frame)
        try:
            return impl(value)
        except _UNFIT:
            raise NoSuchOverload from None

    def binary(frame: Frame) -> Any:
        left, right = one(frame), two(frame)
        try:
            return impl(left, right)
        except _UNFIT:
            raise NoSuchOverload from None

    def general(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        try:
            return impl(*values)
        except _UNFIT:
            raise NoSuchOverload from None

    match tuple(arguments):
        case (one,):
            return unary
        case (one, two):
            return binary
    return general


def metered_texts(impl: Callable[..., Any], work: Work, one: Step, two: Step) -> Step:
    """The common case of ``metered_call``: two strings, whose size is their length."""

    def run(frame: Frame) -> Any:
        left, right = one(frame), two(frame)
        try:
            frame[SPENT] += work(len(left), len(right))
            if frame[SPENT] > frame[NEXT_CHECK]:
                checkpoint(frame)
            return _charged(impl(left, right), frame)
        except _UNFIT:
            raise NoSuchOverload from None

    return run


def metered_call(overload: Overload, arguments: Sequence[Step]) -> Step:
    def run(frame: Frame) -> Any:
        return _metered(overload, [argument(frame) for argument in arguments], frame)

    return run


def _metered(overload: Overload, values: list[Any], frame: Frame) -> Any:
    work = overload.work
    try:
        if work is None:
            frame[SPENT] += 1
        else:
            measure = traversal if overload.traverses else size_of
            frame[SPENT] += work(*map(measure, values))
        if frame[SPENT] > frame[NEXT_CHECK]:
            checkpoint(frame)
        return _charged(overload.impl(*values), frame)
    except _UNFIT:
        raise NoSuchOverload from None


def _charged(result: Any, frame: Frame) -> Any:
    """A large result is paid for on top: it can be far larger than the arguments it came from."""
    if type(result) in _GROWING and len(result) > _LARGE:
        frame[SPENT] += len(result) * 0.1
        checkpoint(frame)
    return result


def traversal(value: Any) -> float:
    """Elements of a list plus a tenth of the length of each."""
    if not is_list(value):
        return size_of(value)
    return sum(1 + size_of(item) * 0.1 for item in value)


def dispatched(pick: Callable[[Sequence[Any]], Overload | None], arguments: Sequence[Step]) -> Step:
    def run(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        overload = pick(values)
        if overload is None:
            raise NoSuchOverload
        return _metered(overload, values, frame)

    return run


def make_list(items: Sequence[Step], optional: frozenset[int]) -> Step:
    if not optional:
        return lambda frame: [item(frame) for item in items]

    def run(frame: Frame) -> list[Any]:
        out: list[Any] = []
        for position, item in enumerate(items):
            value = item(frame)
            if position not in optional:
                out.append(value)
            elif value.present:
                out.append(value.content)
        return out

    return run


def make_map(entries: Sequence[tuple[Step, Step, bool]]) -> Step:
    def run(frame: Frame) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for key_step, value_step, optional in entries:
            key, value = key_step(frame), value_step(frame)
            if optional:
                if not value.present:
                    continue
                value = value.content
            if key in out:
                raise CelError(f"Failed with repeated key {key}")
            out[key] = value
        return out

    return run


def bound(slot: int, value: Step, body: Step) -> Step:
    def run(frame: Frame) -> Any:
        frame[slot] = value(frame)
        return body(frame)

    return run
