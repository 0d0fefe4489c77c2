"""Type checking of validating policies against schemas, for ``status.typeChecking``.

Called by ``server/registry/controllers/policy_types.py``. The warnings are only informative; they
do not change how a policy is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from instar.base.field_errors import child, index
from instar.kube.admission.expressions import declared_variables, with_variables
from instar.kube.admission.policies.variables import compile_variables
from instar.kube.api.names import GroupVersionKind
from instar.kube.cel.engine import BadExpression, analyse
from instar.kube.cel.types import DYN, Type

MAX_KINDS: Final = 10
"""Kinds that are checked for one rule."""


class TypedKind(NamedTuple):
    """A kind that a policy matches, with the CEL type of its objects."""

    kind: GroupVersionKind
    type: Type


class RuleResource(NamedTuple):
    """A resource that a rule names without wildcards."""

    group: str
    version: str
    resource: str


def resources_to_check(spec: Mapping[str, Any]) -> Iterator[list[RuleResource]]:
    """Yield for each rule the resources that it names without wildcards."""
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        if any("*" in name for name in (*groups, *versions)):
            continue
        resources = [name for name in rule.get("resources") or () if not {"*", "/"} & set(name)]
        yield [
            RuleResource(group, version, resource)
            for group in sorted(groups)
            for version in sorted(versions)
            for resource in sorted(resources)
        ]


def check_types(
    spec: Mapping[str, Any], kinds: Iterable[TypedKind], params: Type | None = None
) -> list[dict[str, str]]:
    """Return the ``expressionWarnings`` of a policy."""
    checkers = [_Checker(spec, kind, params) for kind in sorted(kinds, key=_order)]
    found: list[dict[str, str]] = []
    for position, validation in enumerate(spec.get("validations") or ()):
        path = index("spec.validations", position)
        for member in ("expression", "messageExpression"):
            text = "\n".join(_warnings(checkers, validation.get(member) or ""))
            if text:
                found.append({"fieldRef": child(path, member), "warning": text})
    return found


def _warnings(checkers: Sequence[_Checker], source: str) -> Iterator[str]:
    if not source:
        return
    for checker in checkers:
        problem = checker.problem(source)
        if problem:
            yield f"{checker.kind}: {problem}\n"


def _order(typed: TypedKind) -> tuple[str, str, str]:
    return typed.kind.group, typed.kind.version, typed.kind.kind


class _Checker:
    """The CEL environment of one kind."""

    def __init__(self, spec: Mapping[str, Any], typed: TypedKind, params: Type | None) -> None:
        self.kind = typed.kind
        names = declared_variables(
            params=params is not None, object_type=typed.type, params_type=params or DYN
        )
        composed = compile_variables(spec.get("variables") or (), names)
        self._names = with_variables(names, composed.types)

    def problem(self, source: str) -> str:
        try:
            analyse(source, self._names)
        except BadExpression as error:
            return str(error)
        return ""
