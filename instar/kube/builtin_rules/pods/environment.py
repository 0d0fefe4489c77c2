"""Validates environment variables and references to fields, resources, secrets and config maps.

Called by ``containers.py``, and by ``volumes.py``, which has the same references.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, child, index, invalid, not_supported, required
from instar.base.json_values import Object
from instar.kube.api.string_rules import qualified_name
from instar.kube.builtin_rules.basics import config_key_errors, name_errors, texts_at

_ENV_TEXT = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_KNOWN_FIELDS = frozenset(
    {
        "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
        "metadata.uid", "spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName",
        "spec.schedulerName", "status.phase", "status.hostIP", "status.hostIPs", "status.podIP",
        "status.podIPs",
    }
)  # fmt: skip
ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_MANY = "may not have more than one field specified at a time"


def env_errors(variables: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, variable in enumerate(variables):
        where = index(path, position)
        found += _env_name(variable.get("name", ""), child(where, "name"))
        source = variable.get("valueFrom")
        if source is not None:
            found += _source_errors(variable, source, child(where, "valueFrom"))
    return found


def _env_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    if name.isascii() and name.isprintable() and "=" not in name:
        return []
    return [invalid(path, name, _ENV_TEXT)]


def _source_errors(variable: Object, source: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    given = [name for name in _SOURCES if source.get(name) is not None]
    for name in given:
        where = child(path, name)
        if name == "fieldRef":
            found += field_ref_errors(source[name], where, ENV_FIELDS)
        elif name == "resourceFieldRef":
            found += resource_ref_errors(source[name], where, in_volume=False)
        elif name != "fileKeyRef":
            found += _key_ref_errors(source[name], where)
    if not given:
        text = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        found.append(invalid(path, "", text))
    elif variable.get("value"):
        found.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(invalid(path, "", _MANY))
    return found


def _key_ref_errors(reference: Object, path: str) -> list[FieldError]:
    found = name_errors(reference.get("name", ""), child(path, "name"))
    return found + config_key_errors(reference.get("key", ""), child(path, "key"))


def field_ref_errors(reference: Object, path: str, known: tuple[str, ...]) -> list[FieldError]:
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    where = child(path, "fieldPath")
    if not version:
        return [required(child(path, "apiVersion"))]
    if not field:
        return [required(where)]
    name, key = _split(field)
    trouble = ""
    if version != "v1":
        trouble = f"unsupported pod version: {version}"
    elif name not in _KNOWN_FIELDS:
        trouble = f"field label not supported: {name}"
    elif key is not None and name not in ("metadata.annotations", "metadata.labels"):
        trouble = f"field label does not support subscript: {field}"
    if trouble:
        return [invalid(where, field, f"error converting fieldPath: {trouble}")]
    if key is not None:
        folded = key.lower() if name == "metadata.annotations" else key
        return texts_at(path, key, qualified_name(folded))
    return [] if field in known else [not_supported(where, field, known)]


def _split(field: str) -> tuple[str, str | None]:
    """Split ``metadata.labels['key']``; the second part is None without a subscript."""
    if not field.endswith("']"):
        return field, None
    name, found, key = field.removesuffix("']").partition("['")
    return (name, key) if found and name else (field, None)


def resource_ref_errors(reference: Object, path: str, *, in_volume: bool) -> list[FieldError]:
    if in_volume and not reference.get("containerName"):
        return [required(child(path, "containerName"))]
    resource = reference.get("resource", "")
    if not resource:
        return [required(child(path, "resource"))]
    huge = resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    if resource not in _RESOURCES and not huge:
        return [not_supported(child(path, "resource"), resource, _RESOURCES)]
    return []


def env_from_errors(sources: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, source in enumerate(sources):
        where = index(path, position)
        if source.get("prefix"):
            found += _env_name(source["prefix"], child(where, "prefix"))
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in given:
            found += name_errors(source[name].get("name", ""), f"{where}.{name}.name")
        if not given:
            text = "must specify one of: `configMapRef` or `secretRef`"
            found.append(invalid(where, "", text))
        elif len(given) > 1:
            found.append(invalid(where, "", _MANY))
    return found
