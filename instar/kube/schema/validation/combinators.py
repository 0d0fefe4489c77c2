"""Validation of ``anyOf``, ``oneOf``, ``allOf`` and ``not``.

Called by ``validate.py``. Branches are validated without old values; ratcheting compares the old
and new value of the enclosing node only. When no branch matches, the errors of the branch with the
most passed checks are reported; checks are counted as upstream counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from instar.base.field_errors import FieldError, FieldErrorType, go_quote
from instar.kube.schema.formats.named import string_format
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.findings import collect_errors
from instar.kube.schema.validation.node import Check, ValidationNode

Compile = Callable[[Structural], ValidationNode]


def compile_combinators(raw: Mapping[str, Any], compile_node: Compile) -> list[Check]:
    checks: list[Check] = []
    for keyword, build in (("anyOf", _any_of), ("oneOf", _one_of), ("allOf", _all_of)):
        branches = raw.get(keyword)
        if isinstance(branches, list) and branches:
            nodes = [compile_node(structural(_schema(branch))) for branch in branches]
            checks.append(build(nodes))
    negated = raw.get("not")
    if isinstance(negated, Mapping):
        checks.append(_not(compile_node(structural(negated))))
    return checks


def _schema(branch: Any) -> Mapping[str, Any]:
    return branch if isinstance(branch, Mapping) else {}


def _failure(path: str, text: str) -> FieldError:
    """Return the error; upstream names no field and puts the path into the text."""
    return FieldError(FieldErrorType.INVALID, "", f"{go_quote(path)} {text}", "", place=path)


def _errors(node: ValidationNode, value: Any, path: str) -> list[FieldError]:
    return collect_errors(lambda out: node.run(value, ABSENT, path, out))


def _any_of(nodes: list[ValidationNode]) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        failed = []
        for node in nodes:
            found = _errors(node, value, path)
            if not found:
                return
            failed.append((node, found))
        out.append(_failure(path, "must validate at least one schema (anyOf)"))
        out.extend(_best(failed, value, path))

    return check


def _one_of(nodes: list[ValidationNode]) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        results = [(node, _errors(node, value, path)) for node in nodes]
        valid = sum(not found for _, found in results)
        if valid == 1:
            return
        text = "must validate one and only one schema (oneOf). "
        if valid:
            out.append(_failure(path, f"{text}Found {valid} valid alternatives"))
        else:
            out.append(_failure(path, f"{text}Found none valid"))
            out.extend(_best(results, value, path))

    return check


def _all_of(nodes: list[ValidationNode]) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        failed = 0
        for node in nodes:
            found = _errors(node, value, path)
            failed += bool(found)
            out.extend(found)
        if not failed:
            return
        none = ". None validated" if failed == len(nodes) else ""
        out.append(_failure(path, f"must validate all the schemas (allOf){none}"))

    return check


def _not(node: ValidationNode) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if node.accepts(value, path):
            out.append(_failure(path, "must not validate the schema (not)"))

    return check


def _best(
    failed: list[tuple[ValidationNode, list[FieldError]]], value: Any, path: str
) -> list[FieldError]:
    """Return the errors of the branch with the most passed checks; the first of equals."""
    if len(failed) == 1:
        return failed[0][1]
    return max(failed, key=lambda item: _count_passed(item[0].schema, value))[1]


def _count_passed(schema: Structural, value: Any) -> int:
    """Return how many checks upstream counts for this value, children included."""
    raw = schema.raw
    if value is None:
        return 1
    count = 3  # the node itself, its combinators and its enum
    count += 1  # combinators count themselves once more
    if schema.type or schema.int_or_string or raw.get("format"):
        count += 2 if _type_fits(schema, value) else 1
    kind = type(value)
    if kind is str:
        count += 1 + (string_format(str(raw.get("format") or "")) is not None)
    elif kind in (int, float):
        count += 2
    elif kind is list:
        count += 2
        if schema.items is not None:
            count += sum(_count_passed(schema.items, item) for item in value)
    elif kind is dict:
        count += 1 + _count_passed_members(schema, value)
    for branch in raw.get("allOf") or ():
        count += _count_passed(structural(_schema(branch)), value)
    return count


def _count_passed_members(schema: Structural, value: dict[str, Any]) -> int:
    total = 0
    for name, item in value.items():
        member = schema.properties.get(name, schema.additional)
        if isinstance(member, Structural):
            total += _count_passed(member, item)
    return total


def _type_fits(schema: Structural, value: Any) -> bool:
    stated = {"integer", "string"} if schema.int_or_string and not schema.type else {schema.type}
    names = {str: "string", bool: "boolean", list: "array", dict: "object"}
    if type(value) in (int, float):
        whole = type(value) is int or value.is_integer()
        return "number" in stated or ("integer" in stated and whole)
    return names[type(value)] in stated
