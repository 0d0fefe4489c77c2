"""Compiles a policy's variables: each can use those declared before it, and all expressions can use
all of them.

Called by the policy programs, type checking and the validation of policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from instar.kube.admission.compile import AdmissionExpression, compile_expression
from instar.kube.admission.expressions import with_variables
from instar.kube.cel.host_types import without_objects
from instar.kube.cel.types import DYN, Type


class Composition(NamedTuple):
    """The compiled variables of a policy, in order."""

    expressions: dict[str, AdmissionExpression]
    types: dict[str, Type]
    """Types of the variables for other expressions."""
    listed: list[AdmissionExpression]
    """In listed order; of two with one name the last counts."""


def compile_variables(
    variables: Iterable[Mapping[str, Any]], names: Mapping[str, Type]
) -> Composition:
    found = Composition({}, {}, [])
    for variable in variables:
        name = variable.get("name", "")
        seen = with_variables(names, found.types)
        compiled = compile_expression(variable.get("expression", ""), seen)
        found.expressions[name] = compiled
        found.types[name] = DYN if compiled.problem else without_objects(compiled.type)
        found.listed.append(compiled)
    return found
