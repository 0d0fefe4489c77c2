"""Published schema of one version of a custom resource: its structural schema plus ObjectMeta.

Called by ``documents.py``. For v2, keywords are dropped that kubectl's old reader mistakes for
errors; see ``_degrade``. The functions read the raw JSONSchemaProps and must not change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base.json_values import Object
from instar.kube.api.crd import CrdVersion
from instar.kube.api.discovery import DiscoveryResource
from instar.kube.openapi.models import API_VERSION, KIND, OBJECT_META
from instar.kube.openapi.naming import META_PREFIX
from instar.kube.openapi.reference_style import Dialect
from instar.kube.schema.structure.structural_rules import structural_errors

MODEL_KEY = "x-instar-model"
"""In the schema of a built-in kind: publish a reference to this model instead of the node."""

_KEPT_KEYWORDS = {
    "description",
    "type",
    "format",
    "title",
    "default",
    "nullable",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "maxProperties",
    "minProperties",
    "enum",
    "required",
    "externalDocs",
    "example",
}
_TYPES = (None, "", "array", "boolean", "integer", "number", "object", "string")
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_ONE_OF_BOTH = [{"type": "integer"}, {"type": "string"}]


def published_schema(resource: DiscoveryResource, version: CrdVersion, dialect: Dialect) -> Object:
    crd, raw = resource.crd, version.schema
    opaque = dialect.v2 and (crd.preserve_unknown or (raw or {}).get(_PRESERVE))
    if raw is None or opaque or not (resource.builtin or _is_publishable(raw)):
        # kubectl assumes that listed properties are all there are, so not even metadata is listed.
        schema: Object = {"type": "object"}
    else:
        schema = _node(raw, dialect)
        _add_object_fields(schema, dialect)
    gvk = {"group": crd.group, "kind": crd.names.kind, "version": version.name}
    schema["x-kubernetes-group-version-kind"] = [gvk]
    return {**schema, **selectable_fields(version)}


def selectable_fields(version: CrdVersion) -> Object:
    """Return the selectable-field extension of a model and its list; empty if there are none."""
    if not version.selectable_fields:
        return {}
    paths = [{"fieldPath": path.removeprefix(".")} for path in version.selectable_fields]
    return {"x-kubernetes-selectable-fields": paths}


def _is_publishable(raw: Mapping[str, Any]) -> bool:
    """Return whether a schema can be published; old CRDs may have incomplete ones or unknown
    types."""
    return _has_known_types(raw) and not structural_errors(raw, "")


def _has_known_types(raw: Mapping[str, Any]) -> bool:
    children = [*(raw.get("properties") or {}).values(), raw.get("items")]
    children.append(raw.get("additionalProperties"))
    return raw.get("type") in _TYPES and all(
        _has_known_types(item) for item in children if isinstance(item, Mapping)
    )


def _node(raw: Mapping[str, Any], dialect: Dialect) -> Object:
    if MODEL_KEY in raw:
        return dialect.ref(raw[MODEL_KEY], raw.get("description", ""))
    out: Object = {
        key: value
        for key, value in raw.items()
        if (key in _KEPT_KEYWORDS or key.startswith("x-kubernetes-")) and _has_meaning(key, value)
    }
    if dialect.v2:
        _degrade(raw, out)
    else:
        out.update((key, raw[key]) for key in _JUNCTORS if raw.get(key))
        _unfold_int_or_string(out)
    _add_children(raw, out, dialect)
    if raw.get(_EMBEDDED) and not (dialect.v2 and raw.get(_PRESERVE)):
        _add_object_fields(out, dialect)
        missing = [name for name in ("kind", "apiVersion") if name not in out.get("required", ())]
        out["required"] = [*out.get("required", ()), *missing]
    return out


def _has_meaning(key: str, value: Any) -> bool:
    """Return whether a keyword has an effect; a bound of zero and any free-form value have one."""
    if value is None or key in ("default", "example"):
        return value is not None
    return not (value is False or value == "" or value == [])


def _add_children(raw: Mapping[str, Any], out: Object, dialect: Dialect) -> None:
    bare = dialect.v2 and (raw.get("nullable") or raw.get(_PRESERVE))
    if raw.get("properties") and not bare:
        out["properties"] = {
            name: _node(child, dialect) for name, child in raw["properties"].items()
        }
    if isinstance(raw.get("items"), Mapping) and not bare:
        out["items"] = _node(raw["items"], dialect)
    additional = raw.get("additionalProperties")
    if isinstance(additional, Mapping):
        out["additionalProperties"] = _node(additional, dialect)
    elif additional is not None:
        out["additionalProperties"] = additional


def _degrade(raw: Mapping[str, Any], out: Object) -> None:
    """Drop unsupported keywords of the node itself; its children are handled separately."""
    out.pop("default", None)
    nullable, preserve = out.pop("nullable", False), raw.get(_PRESERVE)
    without_items = nullable or preserve or not isinstance(raw.get("items"), Mapping)
    if (
        nullable
        or (preserve and out.get("type") == "object")
        or (without_items and out.get("type") == "array")
    ):
        out.pop("type", None)
    children = {} if nullable or preserve else raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    if isinstance(additional, Mapping) and additional.get("nullable"):
        out.pop("required", None)
    elif "required" in out:
        kept = [name for name in out["required"] if not (children.get(name) or {}).get("nullable")]
        out["required"] = kept
        if not kept:
            del out["required"]


def _unfold_int_or_string(out: Object) -> None:
    if not out.get(_INT_OR_STRING) or out.get("anyOf") == _ONE_OF_BOTH:
        return
    all_of = out.get("allOf") or []
    if all_of and all_of[0].get("anyOf") == _ONE_OF_BOTH:
        return
    if "anyOf" in out:
        out["allOf"] = [{"anyOf": _ONE_OF_BOTH}, *all_of]
    else:
        out["anyOf"] = _ONE_OF_BOTH


def _add_object_fields(schema: Object, dialect: Dialect) -> None:
    schema["properties"] = {
        **schema.get("properties", {}),
        "apiVersion": {"description": API_VERSION, "type": "string"},
        "kind": {"description": KIND, "type": "string"},
        "metadata": dialect.ref(f"{META_PREFIX}ObjectMeta", OBJECT_META),
    }
