"""Defaults of a CustomResourceDefinition's own fields, by the API version it was written in.

Applied by ``documents.py`` and the server right after decoding, to requests and stored CRDs alike.
The functions work on v1 and v1beta1 objects, not on the internal form (``kube/api/crd_codec.py``).
"""

from __future__ import annotations

from instar.base.json_values import Object

_SERVICE_PORT = 443


def with_defaults(obj: Object) -> Object:
    """Return a copy of a v1 or v1beta1 object (by its ``apiVersion``) with defaults applied."""
    spec = dict(obj.get("spec") or {})
    spec["names"] = _names(spec.get("names") or {})
    if str(obj.get("apiVersion", "")).endswith("/v1beta1"):
        _v1beta1(spec)
    else:
        _v1(spec)
    return {**obj, "spec": spec, "status": _status(obj.get("status") or {}, spec)}


def _names(names: Object) -> Object:
    out = dict(names)
    kind = out.get("kind") or ""
    if not out.get("singular"):
        out["singular"] = kind.lower()
    if not out.get("listKind") and kind:
        out["listKind"] = f"{kind}List"
    return {name: value for name, value in out.items() if value or name in ("plural", "kind")}


def _v1(spec: Object) -> None:
    conversion = spec.get("conversion")
    if conversion is None:
        spec["conversion"] = {"strategy": "None"}
        return
    webhook = conversion.get("webhook") or {}
    client = webhook.get("clientConfig")
    if client is not None:
        webhook = {**webhook, "clientConfig": _with_port(client)}
        spec["conversion"] = {**conversion, "webhook": webhook}


def _v1beta1(spec: Object) -> None:
    spec["scope"] = spec.get("scope") or "Namespaced"
    if not spec.get("versions") and spec.get("version"):
        spec["versions"] = [{"name": spec["version"], "served": True, "storage": True}]
    names = [item.get("name", "") for item in spec.get("versions") or ()]
    # Old files name any of their versions here; the versions list decides.
    if names and (not spec.get("version") or spec["version"] in names):
        spec["version"] = names[0]
    conversion = dict(spec.get("conversion") or {"strategy": "None"})
    if conversion.get("strategy") == "Webhook" and not conversion.get("conversionReviewVersions"):
        conversion["conversionReviewVersions"] = ["v1beta1"]
    if conversion.get("webhookClientConfig") is not None:
        conversion["webhookClientConfig"] = _with_port(conversion["webhookClientConfig"])
    spec["conversion"] = conversion
    if spec.get("preserveUnknownFields") is None:
        spec["preserveUnknownFields"] = True


def _with_port(client: Object) -> Object:
    service = client.get("service")
    if service is None or service.get("port") is not None:
        return client
    return {**client, "service": {**service, "port": _SERVICE_PORT}}


def _status(status: Object, spec: Object) -> Object:
    if status.get("storedVersions"):
        return status
    storage = storage_version(spec)
    return {**status, "storedVersions": None if storage is None else [storage]}


def storage_version(spec: Object) -> str | None:
    """Return the first version flagged as storage, if any."""
    names = (item.get("name", "") for item in spec.get("versions") or () if item.get("storage"))
    return next(names, None)
