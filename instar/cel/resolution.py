"""Which overloads of a function fit the types of its arguments, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence

from instar.cel.functions import Overload
from instar.cel.types import DYN, Kind, Substitution, Type


def resolve(
    types: Substitution, overloads: Sequence[Overload], actual: Sequence[Type], *, member: bool
) -> tuple[Type, tuple[Overload, ...]] | None:
    """The type of the result and all overloads that fit: several do where types are open, and
    then the result is open too. Each that fits tells ``types`` more; None when none does."""
    matching: list[Overload] = []
    result: Type | None = None
    count = len(actual)
    for overload in overloads:
        if overload.member is not member or len(overload.params) != count:
            continue
        expected, produced = overload.params, overload.result
        if overload.parameters:
            *renamed, produced = types.instantiate((*expected, produced), overload.parameters)
            expected = tuple(renamed)
        if types.assignable_all(actual, expected):
            matching.append(overload)
            outcome = types.apply(produced)
            if result is None:
                result = outcome
            elif result.kind is not Kind.DYN and result != outcome:
                result = DYN
    return None if result is None else (result, tuple(matching))
