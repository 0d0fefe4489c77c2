"""Models of the built-in kinds, from the facts: types in full, and our own few words.

The facts have no documentation. What every kind has in common is described here, what people ask
for most in ``field_words``; for the rest its types must do. Must not know which kinds are served.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from instar.base.json_values import Object
from instar.kube.facts.types import definition_name, definitions
from instar.kube.openapi.field_descriptions import FIELD_WORDS
from instar.kube.openapi.kind_descriptions import WORDS
from instar.kube.openapi.models import API_VERSION, KIND, LIST_META, OBJECT_META
from instar.kube.openapi.naming import META_PREFIX
from instar.kube.openapi.reference_style import V3, Dialect

BORROWED = {
    ("CustomResourceDefinition", "v1beta1"): (("apiextensions.k8s.io/v1", "JSONSchemaProps"),)
}
"""Types that a schema written by hand refers to, by its kind and version."""
_KINDS = "x-kubernetes-group-version-kind"
_MEMBERS = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "spec": "What is wanted of the object.",
    "status": "What was last seen of the object; written by whoever looks after it.",
    "items": "The objects of the list.",
}
_METADATA = {f"{META_PREFIX}ObjectMeta": OBJECT_META, f"{META_PREFIX}ListMeta": LIST_META}


def is_known(api_version: str, kind: str) -> bool:
    """Whether the facts have the kind; a few old ones they do not have."""
    return definition_name(api_version, kind) is not None


def builtin_models(roots: Iterable[tuple[str, str]], dialect: Dialect) -> Object:
    """(apiVersion, type) pairs → their models and all they refer to, by name."""
    found = definitions(roots)
    for name, model in found.items():
        if _KINDS in model:
            _describe(name, model)
        for member, words in FIELD_WORDS.get(name.rpartition(".")[2], {}).items():
            if member in model.get("properties", {}):
                _tell(model["properties"][member], words)
    if dialect.v2:
        return {name: _poorer(model, dialect) for name, model in found.items()}
    return found


def _describe(name: str, model: Object) -> None:
    kind = name.rpartition(".")[2]
    item = kind.removesuffix("List")
    words = f"{kind} is a list of {item} objects." if item != kind else WORDS.get(kind)
    if words:
        model["description"] = words
    for member, schema in model.get("properties", {}).items():
        told = _MEMBERS.get(member)
        if member == "metadata":
            told = _METADATA.get(_target(schema))
        if told:
            _tell(schema, told)


def _target(schema: Object) -> str:
    """The bare name of the model a node refers to; empty where it refers to none."""
    wrapped = schema.get("allOf") or [schema]
    return str(wrapped[0].get("$ref", "")).removeprefix(V3.prefix)


def _tell(schema: Object, words: str) -> None:
    """What stands beside a reference is only read where the reference is wrapped."""
    if "$ref" in schema:
        schema["allOf"] = [{"$ref": schema.pop("$ref")}]
    schema["description"] = words


def _poorer(schema: Any, dialect: Dialect) -> Any:
    """The same in OpenAPI v2: no defaults, no choice between types, references bare."""
    if not isinstance(schema, dict):
        return schema
    out: Object = {}
    for key, value in schema.items():
        if key == "properties":
            out[key] = {name: _poorer(item, dialect) for name, item in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _poorer(value, dialect)
        elif key == "allOf":
            out |= _poorer(value[0], dialect)
        elif key == "oneOf":
            out["type"] = "string"
        elif key == "$ref":
            out[key] = dialect.prefix + value.removeprefix(V3.prefix)
        elif key != "default":
            out[key] = value
    return out
