"""MutatingAdmissionPolicy as a compiled program: applies each mutation to an object.

Called by ``server/registry/admission/policies/mutating.py``, which prunes, defaults and validates
after each mutation. An ``ApplyConfiguration`` is merged like server-side apply, but without field
ownership and without removing fields; a ``JSONPatch`` is applied as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from instar.base.json_values import Object, copy_json, is_larger
from instar.base.limits import MAX_BODY
from instar.kube.admission.compile import (
    BUILT_OBJECT,
    JSON_PATCHES,
    AdmissionExpression,
    compile_expression,
)
from instar.kube.admission.evaluation import (
    CostPhase,
    Error,
    ExpressionInputs,
    Failed,
    Meter,
    OutOfBudget,
)
from instar.kube.admission.expressions import VARIABLES, declared_variables, with_variables
from instar.kube.admission.match_conditions import Matched, read_conditions
from instar.kube.admission.policies.variables import compile_variables
from instar.kube.api.names import GroupVersionKind, parse_group_version
from instar.kube.apply.merge import merge
from instar.kube.apply.ownership_schema import Atom, TypedSchema
from instar.kube.apply.validate import problems_text, type_problems
from instar.kube.cel.cel_to_json import to_json
from instar.kube.cel.library.patches import misplaced_types
from instar.kube.cel.values import CelError, StructValue
from instar.kube.patches.json_patch import PatchFailed, TestFailed, json_patch

T = TypeVar("T")
APPLY, JSON_PATCH = "ApplyConfiguration", "JSONPatch"


class MutationFailed(Exception):
    """The mutation failed with upstream's message; ``error`` is its category."""

    def __init__(self, text: str, error: Error = Error.INVALID) -> None:
        super().__init__(text)
        self.error = error


class Mutation(NamedTuple):
    """A compiled mutation of a MutatingAdmissionPolicy."""

    patch_type: str
    expression: AdmissionExpression


class MutatingProgram:
    """A compiled policy, shared by all requests; has no state between them."""

    __slots__ = ("_conditions", "_variables", "mutations", "reads")

    def __init__(self, spec: Mapping[str, Any]) -> None:
        params = spec.get("paramKind") is not None
        names = declared_variables(params=params)
        composed = compile_variables(spec.get("variables") or (), names)
        seen = with_variables(names, composed.types)
        self._conditions = read_conditions(spec.get("matchConditions"), params=params)
        self._variables = composed.expressions
        self.mutations = [_mutation(each, seen) for each in spec.get("mutations") or ()]
        expressions = [*self._variables.values(), *(each.expression for each in self.mutations)]
        self.reads = self._conditions.reads.union(*(each.reads for each in expressions))
        """All variables that its expressions use; other values need not be fetched."""
        if VARIABLES not in self.reads:
            self._variables = {}

    def match(self, meter: Meter, inputs: ExpressionInputs) -> Matched:
        return self._conditions.match(meter, inputs)

    def mutate(
        self, mutation: Mutation, schema: TypedSchema | None, meter: Meter, inputs: ExpressionInputs
    ) -> Object:
        """Return the object after one mutation; ``inputs.obj`` is not changed. ``schema`` is
        None for a kind without one. Raises ``MutationFailed``."""
        phase = CostPhase(meter, inputs, self._variables)
        try:
            value = phase.run(mutation.expression)
        except OutOfBudget as error:
            raise MutationFailed(str(error), Error.BUDGET) from error
        finally:
            phase.close()
        if isinstance(value, Failed):
            text = (
                value.text.removeprefix(_COMPILATION)
                if value.error is Error.COMPILE
                else value.text
            )
            raise MutationFailed(text, value.error)
        if mutation.patch_type == APPLY:
            return _within_size_limit(apply_configuration(inputs.obj, value, schema))
        return _within_size_limit(apply_patch(inputs.obj, value))


def _within_size_limit(value: T) -> T:
    """Reject a value larger than a request may be, because each mutation could double the object
    within its cost limit."""
    if is_larger(value, MAX_BODY):
        raise MutationFailed(f"the mutated object is larger than {MAX_BODY} bytes")
    return value


_COMPILATION = "compilation error: "
_UNTYPED = "error applying patch: failed to convert patch object to typed object: "


def _mutation(given: Mapping[str, Any], seen: Mapping[str, Any]) -> Mutation:
    patch_type = given.get("patchType", "")
    member, returns = ("applyConfiguration", BUILT_OBJECT)
    if patch_type == JSON_PATCH:
        member, returns = ("jsonPatch", JSON_PATCHES)
    source = (given.get(member) or {}).get("expression", "")
    return Mutation(patch_type, compile_expression(source, seen, returns, builds=True))


def apply_configuration(obj: Object, value: StructValue, schema: TypedSchema | None) -> Object:
    """Merge an apply configuration into the object. Raises ``MutationFailed``."""
    _check_type_names(value)
    if schema is None:
        kind = GroupVersionKind(
            *parse_group_version(obj.get("apiVersion", "")), obj.get("kind", "")
        )
        raise MutationFailed(f"{_UNTYPED}no corresponding type for {kind}")
    try:
        config = _within_size_limit(to_json(value))
    except CelError as error:
        raise MutationFailed(f"error applying patch: {error}") from error
    config |= {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
    for what, each in (("patch", config), ("original", obj)):
        problems = type_problems(schema, each)
        if problems:
            raise MutationFailed(
                f"error applying patch: failed to convert {what} object to typed object: "
                f"{problems_text(problems)}"
            )
        if each is config:
            _refuse_atomics(schema, config)
    merged: Object = copy_json(merge(schema, obj, config))
    return merged


def _check_type_names(value: StructValue) -> None:
    wrong = misplaced_types(value)
    if wrong:
        raise MutationFailed("type mismatch: " + "\n".join(wrong))


def _refuse_atomics(schema: TypedSchema, config: Object) -> None:
    """Reject a configuration that sets part of an atomic value, because it would replace the
    whole value."""
    found = list(_atomics(schema.root, config, ""))
    if found:
        raise MutationFailed(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps "
            f"or structs: {', '.join(found)}"
        )


def _atomics(atom: Atom, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and atom.map is not None:
        if atom.map.atomic:
            yield path
        for name, item in value.items():
            known = atom.map.fields.get(name)
            if known is not None:
                yield from _atomics(known[1], item, f"{path}.{name}")
    elif isinstance(value, list) and atom.list is not None:
        if atom.list.relation == "atomic":
            yield path
        for position, item in enumerate(value):
            yield from _atomics(atom.list.element, item, f"{path}[{position}]")


def apply_patch(obj: Object, operations: Any) -> Object:
    """Apply a JSON patch. Raises ``MutationFailed``. A failed ``test`` is no error: nothing
    changes."""
    patch = _within_size_limit([_operation(each) for each in operations])
    try:
        patched = json_patch(copy_json(obj), patch)
    except TestFailed:
        return obj
    except PatchFailed as error:
        raise MutationFailed(f"JSON Patch: {error}") from error
    if not isinstance(patched, dict):
        raise MutationFailed("JSON Patch: the result is not an object")
    return patched


def _operation(built: StructValue) -> Object:
    fields = built.fields
    found: Object = {"op": fields.get("op", ""), "path": fields.get("path", "")}
    if fields.get("from"):
        found["from"] = fields["from"]
    if "value" in fields:
        value = fields["value"]
        if isinstance(value, StructValue):
            _check_type_names(value)
        try:
            found["value"] = to_json(value, long_as_text=True)
        except CelError as error:
            raise MutationFailed(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
                f"{error}"
            ) from error
    return found
