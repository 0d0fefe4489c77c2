"""Conversion of a CustomResourceDefinition between v1, v1beta1 and the internal form.

Called by ``kube/crds/documents.py``, ``server/registry/kinds/crds.py``, the reviewer and the
snapshots. The internal form is v1beta1's, with top-level fields wherever all versions agree. The
CRD validation rules run on the internal form, so error messages name paths of the internal form.
Input is the output of ``crd_decode.py`` or equal JSON; the result may share parts with the input.
"""

from __future__ import annotations

from instar.base.json_values import Object, copy_json, same_json
from instar.kube.api.crd import GROUP, KIND
from instar.kube.api.crd_decode import CrdDecodeError, Decoded, decode

__all__ = [
    "CrdDecodeError",
    "Decoded",
    "decode",
    "from_internal",
    "to_internal",
    "v1_versions",
]


_TOP_LEVEL_FIELDS = {
    "subresources": "subresources",
    "schema": "validation",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Per-version field -> its top-level name."""


def to_internal(obj: Object) -> Object:
    """Return the internal form of a v1 or v1beta1 object, selected by its ``apiVersion``."""
    spec = obj.get("spec") or {}
    beta = str(obj.get("apiVersion", "")).endswith("/v1beta1")
    return {
        "metadata": obj.get("metadata") or {},
        "spec": _plain(spec) if beta else _hoist(spec),
        "status": _status(obj.get("status")),
    }


def from_internal(internal: Object, version: str) -> Object:
    """Return the object as ``v1`` or ``v1beta1``."""
    spec = internal.get("spec") or {}
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": KIND,
        "metadata": internal.get("metadata") or {},
        "spec": _spread(spec) if version == "v1" else _plain(spec),
        "status": _status(internal.get("status")),
    }


def v1_versions(spec: Object) -> list[Object]:
    """Return the versions of an internal spec with every top-level field copied into each."""
    versions = spec.get("versions") or []
    if not versions and spec.get("version"):
        versions = [{"name": spec["version"], "served": True, "storage": True}]
    shared = {
        name: spec[top] for name, top in _TOP_LEVEL_FIELDS.items() if spec.get(top) is not None
    }
    return [
        {**version, **(copy_json(shared) if position else shared)}
        for position, version in enumerate(versions)
    ]


def _plain(spec: Object) -> Object:
    """Drop absent members; v1beta1 and the internal form have the same fields."""
    return {name: value for name, value in spec.items() if value is not None}


def _hoist(spec: Object) -> Object:
    out: Object = {
        "group": spec.get("group", ""),
        "names": spec.get("names") or {"plural": "", "kind": ""},
        "scope": spec.get("scope", ""),
        "preserveUnknownFields": bool(spec.get("preserveUnknownFields")),
    }
    if spec.get("conversion") is not None:
        out["conversion"] = _flatten_webhook(spec["conversion"])
    versions = [_with_columns(item, "jsonPath", "JSONPath") for item in spec.get("versions") or ()]
    if versions:
        out["version"] = versions[0].get("name", "")
        for name, top in _TOP_LEVEL_FIELDS.items():
            _hoist_one(versions, name, out, top)
        out["versions"] = versions
    return out


def _hoist_one(versions: list[Object], name: str, spec: Object, top: str) -> None:
    """Move ``name`` to the top level if all versions agree; changes both arguments."""
    first = versions[0].get(name)
    if not all(same_json(first, version.get(name)) for version in versions[1:]):
        return
    for version in versions:
        version.pop(name, None)
    if first is not None:
        spec[top] = first


def _spread(spec: Object) -> Object:
    out: Object = {
        "group": spec.get("group", ""),
        "names": spec.get("names") or {"plural": "", "kind": ""},
        "scope": spec.get("scope", ""),
        "versions": [_with_columns(item, "JSONPath", "jsonPath") for item in v1_versions(spec)]
        or None,
    }
    if spec.get("conversion") is not None:
        out["conversion"] = _nest_webhook(spec["conversion"])
    if spec.get("preserveUnknownFields"):
        out["preserveUnknownFields"] = True
    return out


def _with_columns(version: Object, old: str, new: str) -> Object:
    """Return a copy of the version without empty members, with the columns' path under the other
    key."""
    lists = ("additionalPrinterColumns", "selectableFields")
    out = {
        name: value
        for name, value in version.items()
        if value is not None and not (name in lists and not value)
    }
    if "additionalPrinterColumns" in out:
        out["additionalPrinterColumns"] = [
            {new if name == old else name: value for name, value in column.items()}
            for column in out["additionalPrinterColumns"]
        ]
    return out


def _flatten_webhook(conversion: Object) -> Object:
    webhook = conversion.get("webhook") or {}
    out: Object = {"strategy": conversion.get("strategy", "")}
    if webhook.get("clientConfig") is not None:
        out["webhookClientConfig"] = webhook["clientConfig"]
    if webhook.get("conversionReviewVersions"):
        out["conversionReviewVersions"] = webhook["conversionReviewVersions"]
    return out


def _nest_webhook(conversion: Object) -> Object:
    client, reviews = (
        conversion.get("webhookClientConfig"),
        conversion.get("conversionReviewVersions"),
    )
    out: Object = {"strategy": conversion.get("strategy", "")}
    if client is not None or reviews:
        out["webhook"] = {"conversionReviewVersions": reviews or None}
        if client is not None:
            out["webhook"]["clientConfig"] = client
    return out


def _status(status: Object | None) -> Object:
    given = status or {}
    return {
        **given,
        "conditions": given.get("conditions") or None,
        "acceptedNames": given.get("acceptedNames") or {"plural": "", "kind": ""},
        "storedVersions": given.get("storedVersions") or None,
    }
