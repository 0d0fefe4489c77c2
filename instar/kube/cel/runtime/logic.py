"""Closures for ``&&``, ``||``, ``?:`` and the ``or`` of optionals, with short-circuit evaluation.

Built by ``interpreter.py``.
"""

from __future__ import annotations

from instar.kube.cel.runtime.frame import SPENT, Frame, Step
from instar.kube.cel.values import CelError, NoSuchOverload, OptionalValue


def logical(left: Step, right: Step, right_cost: int, decisive: bool) -> Step:
    """Return ``&&`` (decided by False) or ``||`` (decided by True); a decisive side absorbs an
    error."""

    def run(frame: Frame) -> object:
        try:
            value = left(frame)
            if value is decisive:
                return decisive
            if type(value) is not bool:
                raise NoSuchOverload
        except CelError as error:
            frame[SPENT] += right_cost
            if _is_decisive(right, frame, decisive):
                return decisive
            raise error from None
        frame[SPENT] += right_cost
        value = right(frame)
        if value is True or value is False:
            return value
        raise NoSuchOverload

    return run


def _is_decisive(step: Step, frame: Frame, decisive: bool) -> bool:
    try:
        return step(frame) is decisive
    except CelError:
        return False


def choice(
    condition: Step, then: Step, then_cost: int, otherwise: Step, otherwise_cost: int
) -> Step:
    """Return the ternary operator, which evaluates and charges only the chosen branch."""

    def run(frame: Frame) -> object:
        value = condition(frame)
        if value is True:
            frame[SPENT] += then_cost
            return then(frame)
        if value is False:
            frame[SPENT] += otherwise_cost
            return otherwise(frame)
        raise NoSuchOverload

    return run


def first_present(left: Step, right: Step, right_cost: int, *, unwrap: bool) -> Step:
    """Return ``or`` or ``orValue`` of optionals: the second is evaluated only if the first is
    none."""

    def run(frame: Frame) -> object:
        value = left(frame)
        if type(value) is not OptionalValue:
            return value
        if value.present:
            return value.content if unwrap else value
        frame[SPENT] += right_cost
        return right(frame)

    return run
