"""Rules that make a schema structural, which a CRD's schema must be to allow pruning.

Called by CRD validation and the ``NonStructuralSchema`` condition. The rules run on the schema as
written, so that error paths name what the author wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from instar.base.field_errors import FieldError, child, forbidden, index, invalid, key, required
from instar.kube.schema.clean_cache import cache_clean
from instar.kube.schema.validation.patterns import PatternError, compile_pattern

Schema = Mapping[str, Any]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_INT_OR_STRING_BRANCHES = [{"type": "integer"}, {"type": "string"}]

_ROOT = "must not be empty at the root"
_ITEM = "must not be empty for specified array items"
_FIELD = "must not be empty for specified object fields"

_MUST_BE_EMPTY = (
    "type",
    "title",
    "description",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
)
_MUST_BE_UNDEFINED = (
    "default",
    "externalDocs",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)
_MUST_BE_FALSE = ("nullable", _PRESERVE, _EMBEDDED, _INT_OR_STRING)

_METADATA_MAY_HAVE = {"type", "default", "properties"}
_NESTED = {"items", "additionalProperties", "not", "externalDocs"}
"""Keywords that have a meaning even when they are false or empty."""


@cache_clean
def structural_errors(raw: Schema, path: str) -> list[FieldError]:
    """Return every reason why ``raw`` is not structural, sorted by text as upstream does."""
    found = [*_invariants(raw, _ROOT, path), *completeness_errors(raw, path)]
    return sorted(found, key=str)


def _invariants(raw: Schema, level: str, path: str) -> Iterator[FieldError]:
    items = raw.get("items")
    if raw.get("type") == "array" and items is None:
        yield required(child(path, "items"), "must be specified")
    if isinstance(items, Mapping):
        yield from _invariants(items, _ITEM, child(path, "items"))
    for name, item in _properties(raw).items():
        yield from _invariants(item, _FIELD, key(child(path, "properties"), name))
    yield from _additional_errors(raw, level, child(path, "additionalProperties"))
    yield from _extension_errors(raw, path)
    yield from _value_errors(raw, path, may_state_types=_states_int_or_string(raw))
    yield from _type_errors(raw, level, child(path, "type"))
    yield from _meta_errors(raw, level, child(path, "properties"))


def _additional_errors(raw: Schema, level: str, path: str) -> Iterator[FieldError]:
    additional = raw.get("additionalProperties")
    if additional is None:
        return
    if level is _ROOT:
        yield forbidden(path, "must not be used at the root")
    if raw.get(_EMBEDDED) is True:
        yield forbidden(path, f"must not be used if {_EMBEDDED} is set")
    if isinstance(additional, Mapping):
        yield from _invariants(additional, _FIELD, path)


def _extension_errors(raw: Schema, path: str) -> Iterator[FieldError]:
    if raw.get(_INT_OR_STRING) is not True:
        return
    for extension in (_PRESERVE, _EMBEDDED):
        if raw.get(extension) is True:
            detail = f"must be false if {_INT_OR_STRING} is true"
            yield invalid(child(path, extension), True, detail)


def _type_errors(raw: Schema, level: str, path: str) -> Iterator[FieldError]:
    stated = raw.get("type") or ""
    if raw.get(_EMBEDDED) is True and stated != "object":
        detail = f"must be object if {_EMBEDDED} is true"
        yield invalid(path, stated, detail) if stated else required(path, detail)
    elif not stated and raw.get(_INT_OR_STRING) is not True and raw.get(_PRESERVE) is not True:
        yield required(path, level)
    if level is _ROOT and stated and stated != "object":
        yield invalid(path, stated, "must be object at the root")


def _meta_errors(raw: Schema, level: str, path: str) -> Iterator[FieldError]:
    embedded = raw.get(_EMBEDDED) is True
    properties = _properties(raw)
    if embedded or level is _ROOT:
        for name in ("kind", "apiVersion"):
            stated = properties[name].get("type") or "" if name in properties else "string"
            if stated != "string":
                yield invalid(child(key(path, name), "type"), stated, "must be string")
        if "metadata" in properties:
            where = key(path, "metadata")
            yield from metadata_errors(properties["metadata"], where, root=level is _ROOT)
    if embedded and raw.get(_PRESERVE) is not True and not properties:
        yield required(path, f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}")


def metadata_errors(raw: Schema, path: str, *, root: bool) -> Iterator[FieldError]:
    """Return errors of a metadata schema; the root's may only restrict the name."""
    stated = raw.get("type") or ""
    if stated != "object":
        yield invalid(child(path, "type"), stated, "must be object")
    if not root:
        return
    extra = {name for name, value in raw.items() if _is_set(name, value)} - _METADATA_MAY_HAVE
    names = set(_properties(raw)) - {"name", "generateName"}
    if extra or names:
        yield forbidden(
            path,
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified",
        )


def _is_set(name: str, value: Any) -> bool:
    """Return whether a keyword is set; a zero value counts as unset, as in a typed decoder."""
    if name in _NESTED:
        return value is not None
    return value is not None and value is not False and value not in ("", [], {})


def _states_int_or_string(raw: Schema) -> bool:
    return raw.get("anyOf") == _INT_OR_STRING_BRANCHES


def _value_errors(raw: Schema, path: str, *, may_state_types: bool) -> Iterator[FieldError]:
    """Return errors of a node's value validations: its pattern and its junctors (allOf, anyOf
    …)."""
    for junctor in ("anyOf", "allOf", "oneOf"):
        if junctor == "anyOf" and may_state_types:
            continue
        for position, branch in enumerate(_branches(raw, junctor)):
            exempt = junctor == "allOf" and position == 0 and _states_int_or_string(branch)
            where = index(child(path, junctor), position)
            yield from _nested_errors(branch, where, may_state_types=exempt)
    negated = raw.get("not")
    if isinstance(negated, Mapping):
        yield from _nested_errors(negated, child(path, "not"), may_state_types=False)
    yield from _pattern_errors(raw, child(path, "pattern"))


def _pattern_errors(raw: Schema, path: str) -> Iterator[FieldError]:
    pattern = raw.get("pattern")
    if not isinstance(pattern, str) or not pattern:
        return
    try:
        compile_pattern(pattern)
    except PatternError as error:
        detail = f"must be a valid regular expression, but isn't: {error}"
        yield invalid(path, pattern, detail)


def _nested_errors(raw: Schema, path: str, *, may_state_types: bool) -> Iterator[FieldError]:
    yield from _value_errors(raw, path, may_state_types=may_state_types)
    items = raw.get("items")
    if isinstance(items, Mapping):
        yield from _nested_errors(items, child(path, "items"), may_state_types=False)
    properties = _properties(raw)
    for name, item in properties.items():
        where = key(child(path, "properties"), name)
        yield from _nested_errors(item, where, may_state_types=False)
    for keyword in _MUST_BE_EMPTY:
        if raw.get(keyword):
            yield forbidden(child(path, keyword), "must be empty to be structural")
    for keyword in _MUST_BE_UNDEFINED:
        if raw.get(keyword) is not None:
            yield forbidden(child(path, keyword), "must be undefined to be structural")
    if raw.get("additionalProperties") not in (None, False):
        yield forbidden(child(path, "additionalProperties"), "must be undefined to be structural")
    for keyword in _MUST_BE_FALSE:
        if raw.get(keyword) is True:
            yield forbidden(child(path, keyword), "must be false to be structural")
    if "metadata" in properties:
        where = key(child(path, "properties"), "metadata")
        yield forbidden(where, "must not be specified in a nested context")


def completeness_errors(raw: Schema, path: str) -> Iterator[FieldError]:
    """Return errors for fields that value validations mention but the structure does not
    declare."""
    return _completeness(raw, raw, path, path)


def _completeness(value: Schema, skeleton: Schema, at: str, defined: str) -> Iterator[FieldError]:
    """Check that junctors of the root only mention fields that the structure declares."""
    negated = value.get("not")
    if isinstance(negated, Mapping):
        yield from _mentions(negated, skeleton, at, child(defined, "not"))
    for junctor in ("allOf", "anyOf", "oneOf"):
        for position, branch in enumerate(_branches(value, junctor)):
            where = index(child(defined, junctor), position)
            yield from _mentions(branch, skeleton, at, where)


def _mentions(
    value: Schema, skeleton: Schema | None, at: str, defined: str
) -> Iterator[FieldError]:
    if skeleton is None:
        yield required(at, f"because it is defined in {defined}")
        return
    yield from _completeness(value, skeleton, at, defined)
    items = value.get("items")
    if isinstance(items, Mapping):
        declared = skeleton.get("items")
        yield from _mentions(
            items,
            declared if isinstance(declared, Mapping) else None,
            child(at, "items"),
            child(defined, "items"),
        )
    known = _properties(skeleton)
    for name, item in _properties(value).items():
        where = key(child(at, "properties"), name)
        mention = key(child(defined, "properties"), name)
        yield from _mentions(item, known.get(name), where, mention)


def _properties(raw: Schema) -> dict[str, Schema]:
    properties = raw.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {name: item for name, item in properties.items() if isinstance(item, Mapping)}


def _branches(raw: Schema, junctor: str) -> list[Schema]:
    branches = raw.get(junctor)
    if not isinstance(branches, list):
        return []
    return [branch for branch in branches if isinstance(branch, Mapping)]
