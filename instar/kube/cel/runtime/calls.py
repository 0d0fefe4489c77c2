"""Closures for function calls, comparisons and ``in``, including their run-time cost.

Built by ``interpreter.py``. As upstream, all arguments are evaluated even if one fails; the call
then returns the error. Calls of three or more arguments, and calls with a compiled pattern, stop at
the first error. Both rules affect the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from instar.kube.cel.equality import contains, equal
from instar.kube.cel.functions import REGEX, TRAVERSAL, Overload, Work, traversal_cost
from instar.kube.cel.runtime.dispatch import Pick, misfit
from instar.kube.cel.runtime.frame import NEXT_CHECK, SPENT, Frame, Step, checkpoint
from instar.kube.cel.values import CelError, ListValue, MapValue, ObjectValue, Opaque, size_of

_CONTAINERS = frozenset((list, dict, ListValue, MapValue, ObjectValue))
_SIZED_TYPES = frozenset((str, bytes, list, dict))
_LARGE_RESULT = 1000
"""After a call with a longer result the deadline is checked."""
_TYPE_ERRORS = (TypeError, AttributeError)


def _evaluate(step: Step, frame: Frame) -> Any:
    """Return the value or the error."""
    try:
        return step(frame)
    except CelError as error:
        return error


def _charge(overload: Overload, values: Sequence[Any], result: Any, frame: Frame) -> None:
    if overload.weigh is not None:
        frame[SPENT] += overload.weigh(values, result)
    elif overload.work is not None:
        frame[SPENT] += overload.work(*map(size_of, values))
    else:
        frame[SPENT] += 1
    if frame[SPENT] > frame[NEXT_CHECK]:
        checkpoint(frame)


def _apply(overload: Overload, values: Sequence[Any], frame: Frame) -> Any:
    """Run one call and charge it; before it runs if the arguments determine the cost."""
    if overload.weigh is None:
        _charge(overload, values, None, frame)
    result: Any
    try:
        result = overload.impl(*values)
    except _TYPE_ERRORS:
        result = misfit(overload.function, values)
    except CelError as error:
        result = error
    if overload.weigh is not None:
        _charge(overload, values, result, frame)
    if isinstance(result, CelError):
        raise result
    return _after_deadline_check(result, frame)


def _after_deadline_check(result: Any, frame: Frame) -> Any:
    """Check the deadline after a call, because a result can be far larger than its arguments."""
    if type(result) in _SIZED_TYPES and len(result) > _LARGE_RESULT:
        checkpoint(frame)
    return result


def call(overload: Overload, arguments: Sequence[Step]) -> Step:
    """Return a call that costs one unit, which is already charged statically.

    A null among nullable items has the static type of the other items and fits no overload.
    """
    impl, name = overload.impl, overload.function

    def none(_frame: Frame) -> Any:
        return impl()

    def unary(frame: Frame) -> Any:
        value = one(frame)
        try:
            return impl(value)
        except _TYPE_ERRORS:
            raise misfit(name, (value,)) from None

    def binary(frame: Frame) -> Any:
        try:
            left = one(frame)
        except CelError:
            _evaluate(two, frame)
            raise
        right = two(frame)
        try:
            return impl(left, right)
        except _TYPE_ERRORS:
            raise misfit(name, (left, right)) from None

    match tuple(arguments):
        case ():
            return none
        case (one,):
            return unary
        case (one, two):
            return binary
    raise AssertionError("longer calls stop early")


def metered_call(overload: Overload, arguments: Sequence[Step]) -> Step:
    """Return a call of one or two arguments with a cost that depends on them."""
    one, two = arguments[0], arguments[-1]

    def unary(frame: Frame) -> Any:
        try:
            value = one(frame)
        except CelError as error:
            _charge(overload, (error,), error, frame)
            raise
        return _apply(overload, (value,), frame)

    def binary(frame: Frame) -> Any:
        try:
            left = one(frame)
        except CelError as error:
            _charge(overload, (error, _evaluate(two, frame)), error, frame)
            raise
        try:
            right = two(frame)
        except CelError as error:
            _charge(overload, (left, error), error, frame)
            raise
        return _apply(overload, (left, right), frame)

    return unary if len(arguments) == 1 else binary


def metered_text_call(overload: Overload, work: Work, one: Step, two: Step) -> Step:
    """Return the common case of ``metered_call``: two strings, with their lengths as sizes."""
    impl = overload.impl

    def run(frame: Frame) -> Any:
        try:
            left = one(frame)
        except CelError:
            frame[SPENT] += work(1, size_of(_evaluate(two, frame)))
            raise
        try:
            right = two(frame)
        except CelError:
            frame[SPENT] += work(size_of(left), 1)
            raise
        try:
            frame[SPENT] += work(len(left), len(right))
            if frame[SPENT] > frame[NEXT_CHECK]:
                checkpoint(frame)
            return _after_deadline_check(impl(left, right), frame)
        except _TYPE_ERRORS:
            raise misfit(overload.function, (left, right)) from None

    return run


def metered_text_literal_call(overload: Overload, work: Work, one: Step, text: str | bytes) -> Step:
    """Return ``metered_text_call`` with a literal as second argument."""
    impl, length = overload.impl, len(text)

    def run(frame: Frame) -> Any:
        try:
            left = one(frame)
        except CelError:
            frame[SPENT] += work(1, length)
            raise
        try:
            frame[SPENT] += work(len(left), length)
            if frame[SPENT] > frame[NEXT_CHECK]:
                checkpoint(frame)
            return _after_deadline_check(impl(left, text), frame)
        except _TYPE_ERRORS:
            raise misfit(overload.function, (left, text)) from None

    return run


def with_pattern(overload: Overload, one: Step, expression: str) -> Step:
    """Return a call with a precompiled pattern; if its text argument fails, the call costs
    nothing."""
    impl, factor = overload.impl, ceil(len(expression) * REGEX)

    def run(frame: Frame) -> Any:
        text = one(frame)
        try:
            frame[SPENT] += ceil((1.0 + len(text)) * TRAVERSAL) * factor
            if frame[SPENT] > frame[NEXT_CHECK]:
                checkpoint(frame)
            return _after_deadline_check(impl(text, expression), frame)
        except _TYPE_ERRORS:
            raise misfit(overload.function, (text, expression)) from None

    return run


def early(overload: Overload, arguments: Sequence[Step], costs: Sequence[int]) -> Step:
    """Return a call that stops at its first error; unless that is the last argument, it costs
    nothing."""
    last = len(arguments) - 1

    def run(frame: Frame) -> Any:
        values: list[Any] = []
        try:
            values.extend(argument(frame) for argument in arguments)
        except CelError as error:
            position = len(values)
            frame[SPENT] -= sum(costs[position + 1 :])
            if position == last:
                _charge(overload, [*values, error], error, frame)
            raise
        return _apply(overload, values, frame)

    return run


def dispatched_call(
    name: str, pick: Pick, arguments: Sequence[Step], only: Overload | None
) -> Step:
    """Return a call that selects its overload by the run-time arguments; ``only`` is the single
    candidate, if any."""

    def run(frame: Frame) -> Any:
        values = [_evaluate(argument, frame) for argument in arguments]
        failure = next((value for value in values if isinstance(value, CelError)), None)
        overload = pick(values) if failure is None else None
        if overload is not None:
            return _apply(overload, values, frame)
        failure = failure or misfit(name, values)
        if only is None:
            frame[SPENT] += 1
        else:
            _charge(only, values, failure, frame)
        raise failure

    return run


def equals_text(left: Step, text: str, negated: bool) -> Step:
    """Return a comparison with a literal, charged in full; costs are precomputed for each
    shorter length."""
    length, full = len(text), traversal_cost(len(text))
    too_much = [full - traversal_cost(shorter) for shorter in range(length)]

    def run(frame: Frame) -> bool:
        try:
            value = left(frame)
        except CelError:
            frame[SPENT] -= full - traversal_cost(min(1, length))
            raise
        if value == text:
            return not negated
        if type(value) is not str:
            frame[SPENT] -= full - traversal_cost(min(size_of(value), length))
        elif len(value) < length:
            frame[SPENT] -= too_much[len(value)]
        return negated

    return run


def equals_scalar(left: Step, right: Step, negated: bool) -> Step:
    """Return a comparison of numbers or bools; its one unit is already charged statically."""

    def run(frame: Frame) -> bool:
        try:
            ours = left(frame)
        except CelError:
            _evaluate(right, frame)
            raise
        return equal(ours, right(frame)) is not negated

    return run


def equals(left: Step, right: Step, negated: bool) -> Step:
    def run(frame: Frame) -> bool:
        try:
            ours = left(frame)
        except CelError:
            frame[SPENT] += traversal_cost(min(1, size_of(_evaluate(right, frame))))
            raise
        try:
            theirs = right(frame)
        except CelError:
            frame[SPENT] += traversal_cost(min(1, size_of(ours)))
            raise
        if type(ours) is str and type(theirs) is str:
            length, other = len(ours), len(theirs)
            frame[SPENT] += ceil((length if length < other else other) * TRAVERSAL)
            return (ours == theirs) is not negated
        if isinstance(ours, Opaque) and not negated:
            frame[SPENT] += 1
        else:
            frame[SPENT] += traversal_cost(min(size_of(ours), size_of(theirs)))
        # Comparing containers is charged by their length, but takes time proportional to their
        # whole content.
        if frame[SPENT] > frame[NEXT_CHECK] or type(ours) in _CONTAINERS:
            checkpoint(frame)
        return equal(ours, theirs) is not negated

    return run


def in_texts(value: Step, texts: frozenset[str]) -> Step:
    """Return membership of a text in a literal list of texts, as a set look-up."""

    def run(frame: Frame) -> bool:
        sought = value(frame)
        return type(sought) is str and sought in texts

    return run


def in_constants(value: Step, members: frozenset[Any]) -> Step:
    """Return membership in a literal list of texts, numbers or bools; ``members`` distinguishes
    bools."""

    def run(frame: Frame) -> bool:
        sought = value(frame)
        try:
            return (sought.__class__ is bool, sought) in members
        except TypeError:
            return False

    return run


def membership_test(value: Step, container: Step, *, per_element: bool) -> Step:
    """Return membership. ``per_element``: the container is a list; a map's one unit is already
    charged."""

    def run(frame: Frame) -> bool:
        sought, held = _evaluate(value, frame), _evaluate(container, frame)
        if per_element:
            frame[SPENT] += size_of(held)
            if frame[SPENT] > frame[NEXT_CHECK]:
                checkpoint(frame)
        for found in (sought, held):
            if isinstance(found, CelError):
                raise found
        return contains(held, sought)

    return run
