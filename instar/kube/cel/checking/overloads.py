"""Overload resolution: finds the overloads that fit the argument types, and the result type.

Called by ``checker.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from instar.kube.cel.functions import Library, Overload, Resolved
from instar.kube.cel.types import DYN, CelKind, Substitution, Type, parameter_names

_OPEN_KINDS = (CelKind.PARAM, CelKind.ERROR)
_RIGID_KINDS = frozenset(
    (CelKind.PRIMITIVE, CelKind.LIST, CelKind.MAP, CelKind.TYPE, CelKind.OBJECT, CelKind.OPAQUE)
)
"""Two types of different kinds of these never fit each other."""


def resolve(
    types: Substitution, library: Library, name: str, actual: Sequence[Type], *, member: bool
) -> Resolved | None:
    """Return the result type and all fitting overloads; None if there is none.

    With dynamic types several fit, and then the result is dynamic too. Fitting overloads bind type
    parameters in ``types``. Results for plain types are cached.
    """
    names = [
        each.name
        for each in actual
        if not each.params and each.declared is None and each.kind not in _OPEN_KINDS
    ]
    if len(names) < len(actual):
        return _resolve(types, library.overloads(name), actual, member=member)
    key = (name, member, tuple(names))
    found = library.resolved.get(key)
    if found is None:
        found = _resolve(types, library.overloads(name), actual, member=member)
        if found is not None and not parameter_names(found[:1]):
            library.resolved[key] = found
    return found


def _may_fit(actual: Sequence[Type], params: Sequence[Type]) -> bool:
    """Quickly rule out an overload by kind, before the full check."""
    for one, other in zip(actual, params, strict=True):
        if one.kind is not other.kind and one.kind in _RIGID_KINDS and other.kind in _RIGID_KINDS:
            return False
    return True


def _resolve(
    types: Substitution, overloads: Sequence[Overload], actual: Sequence[Type], *, member: bool
) -> Resolved | None:
    matching: list[Overload] = []
    result: Type | None = None
    count = len(actual)
    for overload in overloads:
        if overload.member is not member or len(overload.params) != count:
            continue
        if not _may_fit(actual, overload.params):
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
            elif result.kind is not CelKind.DYN and result != outcome:
                result = DYN
    return None if result is None else (result, tuple(matching))
