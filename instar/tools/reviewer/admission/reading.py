"""Type-checks the expressions of a policy under a CRD's schema, one by one.

``findings.py`` compares the results under the old and the new CRD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from instar.base.field_errors import index
from instar.base.json_values import Object
from instar.kube.admission.expressions import declared_variables, with_variables
from instar.kube.admission.policies.kind_types import object_type
from instar.kube.cel.declared_types import Declared
from instar.kube.cel.engine import BadExpression, analyse, no_types
from instar.kube.cel.host_types import without_objects
from instar.kube.cel.library import KUBERNETES, MUTATION
from instar.kube.cel.library.patches import OBJECT, type_named
from instar.kube.cel.types import DYN, CelKind, Type
from instar.kube.schema.structure.parse import structural
from instar.tools.reviewer.reviewed_crd import ReviewedCrd


class ExpressionReading(NamedTuple):
    """An expression of a policy, and its compile error."""

    field: str
    problem: BadExpression | None


def type_check_policy(spec: Object, side: ReviewedCrd, version: str) -> list[ExpressionReading]:
    """Return every expression of a policy under the schema of one version of a CRD."""
    found = side.crd.version(version)
    schema = None if found is None or found.schema is None else structural(found.schema)
    kind = object_type(schema, side.crd.names.kind)
    names = declared_variables(params=spec.get("paramKind") is not None, object_type=kind)
    out: list[ExpressionReading] = []
    types: dict[str, Type] = {}
    for position, variable in enumerate(spec.get("variables") or ()):
        field = f"{index('spec.variables', position)}.expression"
        source = str(variable.get("expression") or "")
        type, problem = _analysed(source, with_variables(names, types))
        types[str(variable.get("name"))] = without_objects(type)
        out.append(ExpressionReading(field, problem))
    seen = with_variables(names, types)
    for field, source in _expressions(spec):
        out.append(ExpressionReading(field, _analysed(source, seen)[1]))
    built = object_type(schema, OBJECT)
    for field, source in _mutations(spec):
        out.append(ExpressionReading(field, _analysed(source, seen, built)[1]))
    return out


def _expressions(spec: Object) -> Iterator[tuple[str, str]]:
    for member, fields in (
        ("matchConditions", ("expression",)),
        ("validations", ("expression", "messageExpression")),
        ("auditAnnotations", ("valueExpression",)),
    ):
        for position, each in enumerate(spec.get(member) or ()):
            for field in fields:
                if each.get(field):
                    yield f"{index(f'spec.{member}', position)}.{field}", str(each[field])


def _mutations(spec: Object) -> Iterator[tuple[str, str]]:
    for position, mutation in enumerate(spec.get("mutations") or ()):
        for member in ("applyConfiguration", "jsonPatch"):
            source = (mutation.get(member) or {}).get("expression")
            if source:
                yield f"{index('spec.mutations', position)}.{member}.expression", str(source)


def _analysed(
    source: str, names: dict[str, Type], builds: Type | None = None
) -> tuple[Type, BadExpression | None]:
    types, library = (no_types, KUBERNETES) if builds is None else (_named(builds), MUTATION)
    try:
        return analyse(source, names, types=types, library=library).type, None
    except BadExpression as error:
        return DYN, error


def _named(root: Type) -> Callable[[str], Type | None]:
    """Return the fields of ``Object.spec.list{…}``, which are those of the schema at that path."""

    def find(name: str) -> Type | None:
        if name != OBJECT and not name.startswith(f"{OBJECT}."):
            return type_named(name)
        place: Declared | None = root.declared
        for step in name.split(".")[1:]:
            place = None if place is None else _below(place, step)
        if place is None or place.type.kind is not CelKind.OBJECT:
            return type_named(name)
        return place.type

    return find


def _below(place: Declared, step: str) -> Declared | None:
    while place.element is not None:
        place = place.element
    field = place.by_name.get(step)
    found = None if field is None else field.declared
    while found is not None and found.element is not None:
        found = found.element
    return found
