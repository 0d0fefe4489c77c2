"""Compiles one CEL expression of an admission policy or match condition.

Called by the policy programs and by the validation of policy objects. A stored expression may no
longer compile; it is kept with its error and fails when it is run, so that the failure policy
applies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from instar.kube.admission.expressions import ORDER
from instar.kube.cel.engine import BadExpression, BadProgram, CelRunner, analyse, no_types, prepare
from instar.kube.cel.library import KUBERNETES, MUTATION
from instar.kube.cel.library.patches import JSON_PATCH, OBJECT, type_named
from instar.kube.cel.types import BOOL, DYN, NULL, STRING, Type, list_of

BOOLEAN: Final = (BOOL,)
TEXT: Final = (STRING,)
TEXT_OR_NULL: Final = (STRING, NULL)
ANYTHING: Final[tuple[Type, ...]] = ()
JSON_PATCHES: Final = (list_of(JSON_PATCH),)


def _built_object() -> Type:
    found = type_named(OBJECT)
    assert found is not None
    return found


BUILT_OBJECT: Final = (_built_object(),)


class AdmissionExpression(NamedTuple):
    """A compiled expression, or the error of one that does not compile."""

    source: str
    runner: CelRunner | None
    problem: str = ""
    """Compile error; empty if there is none."""
    type: Type = DYN
    reads: frozenset[str] = frozenset()
    """Variables of the environment that the expression uses."""


def compile_expression(
    source: str,
    names: Mapping[str, Type],
    returns: Sequence[Type] = ANYTHING,
    *,
    builds: bool = False,
) -> AdmissionExpression:
    """Compile an expression. ``builds``: whether it may construct objects and patches, as
    mutations do."""
    types, library = (type_named, MUTATION) if builds else (no_types, KUBERNETES)
    try:
        checked = analyse(source, names, types=types, library=library)
    except BadExpression as error:
        return AdmissionExpression(source, None, f"compilation failed: {error}")
    if returns and checked.type not in returns:
        return AdmissionExpression(source, None, _mismatch(returns, checked.type))
    try:
        runner = prepare(checked, ORDER)
    except BadProgram as error:
        return AdmissionExpression(source, None, f"program instantiation failed: {error}")
    return AdmissionExpression(source, runner, "", checked.type, frozenset(checked.variables))


def _mismatch(returns: Sequence[Type], found: Type) -> str:
    wanted = [type_text(each) for each in returns]
    expected = wanted[0] if len(wanted) == 1 else f"one of [{' '.join(wanted)}]"
    return f"must evaluate to {expected} but got {type_text(found)}"


def type_text(type: Type) -> str:
    return "null_type" if type is NULL else str(type)
