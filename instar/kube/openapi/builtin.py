"""OpenAPI models of the built-in kinds, from the type tables of ``kube/facts``.

Called by ``documents.py``. The tables have no documentation, so common fields are described here,
those of CRDs and metadata in ``crd_field_descriptions.py``, and those of the most used kinds in the
other ``*_field_descriptions.py``; the rest has types only. The caller decides which kinds are
served.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from instar.base.json_values import Object
from instar.kube.facts.types import definition_name, definitions
from instar.kube.openapi.crd_field_descriptions import CONDITION, CRD_FIELDS
from instar.kube.openapi.field_descriptions import FIELD_DESCRIPTIONS
from instar.kube.openapi.kind_descriptions import KIND_DESCRIPTIONS
from instar.kube.openapi.models import API_VERSION, KIND, LIST_META, OBJECT_META
from instar.kube.openapi.naming import META_PREFIX
from instar.kube.openapi.nested_field_descriptions import NESTED_FIELDS
from instar.kube.openapi.node_field_descriptions import NODE_FIELDS
from instar.kube.openapi.reference_style import V3, Dialect
from instar.kube.openapi.spec_field_descriptions import SPEC_FIELDS
from instar.kube.openapi.status_field_descriptions import STATUS_FIELDS
from instar.kube.openapi.volume_field_descriptions import VOLUME_FIELDS

BORROWED = {
    ("CustomResourceDefinition", "v1beta1"): (("apiextensions.k8s.io/v1", "JSONSchemaProps"),)
}
"""Types that a hand-written schema refers to, by its kind and version."""
DESCRIPTIONS = (
    CRD_FIELDS,
    SPEC_FIELDS,
    FIELD_DESCRIPTIONS,
    STATUS_FIELDS,
    NODE_FIELDS,
    VOLUME_FIELDS,
    NESTED_FIELDS,
)
"""All tables of field descriptions."""
_KINDS = "x-kubernetes-group-version-kind"
_MEMBERS = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "spec": "Desired state of the object.",
    "status": "Observed state of the object; written by its controller.",
    "items": "The objects of the list.",
}
_METADATA = {f"{META_PREFIX}ObjectMeta": OBJECT_META, f"{META_PREFIX}ListMeta": LIST_META}


def is_known(api_version: str, kind: str) -> bool:
    """Return whether ``kube/facts`` has the kind; a few old ones are missing."""
    return definition_name(api_version, kind) is not None


def builtin_models(roots: Iterable[tuple[str, str]], dialect: Dialect) -> Object:
    """Return the models of (apiVersion, type) pairs and all models they refer to, by name."""
    found = definitions(roots)
    for name, model in found.items():
        if _KINDS in model:
            _describe(name, model)
        for member, words in _field_descriptions(name.rpartition(".")[2]):
            if member in model.get("properties", {}):
                _add_description(model["properties"][member], words)
    if dialect.v2:
        return {name: _for_v2(model, dialect) for name, model in found.items()}
    return found


def _field_descriptions(type_name: str) -> Iterator[tuple[str, str]]:
    if type_name.endswith("Condition"):
        yield from CONDITION.items()
    for table in DESCRIPTIONS:
        yield from table.get(type_name, {}).items()


def _describe(name: str, model: Object) -> None:
    kind = name.rpartition(".")[2]
    item = kind.removesuffix("List")
    words = f"{kind} is a list of {item} objects." if item != kind else KIND_DESCRIPTIONS.get(kind)
    if words:
        model["description"] = words
    for member, schema in model.get("properties", {}).items():
        text = _MEMBERS.get(member)
        if member == "metadata":
            text = _METADATA.get(_target(schema))
        if text:
            _add_description(schema, text)


def _target(schema: Object) -> str:
    """Return the bare name of the model that a node refers to; empty if it refers to none."""
    wrapped = schema.get("allOf") or [schema]
    return str(wrapped[0].get("$ref", "")).removeprefix(V3.prefix)


def _add_description(schema: Object, words: str) -> None:
    """Add a description; beside a reference it is only read if the reference is wrapped."""
    if "$ref" in schema:
        schema["allOf"] = [{"$ref": schema.pop("$ref")}]
    schema["description"] = words


def _for_v2(schema: Any, dialect: Dialect) -> Any:
    """Return the schema for OpenAPI v2: no defaults, no choice between types, bare references."""
    if not isinstance(schema, dict):
        return schema
    out: Object = {}
    for key, value in schema.items():
        if key == "properties":
            out[key] = {name: _for_v2(item, dialect) for name, item in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _for_v2(value, dialect)
        elif key == "allOf":
            out |= _for_v2(value[0], dialect)
        elif key == "oneOf":
            out["type"] = "string"
        elif key == "$ref":
            out[key] = dialect.prefix + value.removeprefix(V3.prefix)
        elif key != "default":
            out[key] = value
    return out
