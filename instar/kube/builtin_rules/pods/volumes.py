"""Validates the volumes of a pod: exactly one source each, with its required fields.

Called by ``pod_spec.py``. Volume sources whose plug-in upstream has removed are counted, but their
fields are not validated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_label
from instar.kube.builtin_rules.basics import name_errors, texts_at
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.kube.builtin_rules.pods.environment import (
    VOLUME_FIELDS,
    field_ref_errors,
    resource_ref_errors,
)

HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"
_ONE_SOURCE = "may not specify more than 1 volume type"
_LEAST_TOKEN, _MOST_TOKEN = 600, 1 << 32


def volume_errors(volumes: list[Object], path: str) -> tuple[list[FieldError], frozenset[str]]:
    """Return the errors and the names of the valid volumes, which alone can be mounted."""
    found: list[FieldError] = []
    names: set[str] = set()
    for position, volume in enumerate(volumes):
        where = index(path, position)
        wrong = source_errors(volume, where)
        name = volume.get("name", "")
        if name:
            wrong += texts_at(child(where, "name"), name, dns1123_label(name))
        else:
            wrong.append(required(child(where, "name")))
        if name in names:
            wrong.append(duplicate(child(where, "name"), name))
        if wrong:
            found += wrong
        else:
            names.add(name)
    return found, frozenset(names)


def source_errors(volume: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    given = [name for name in _ORDER if volume.get(name) is not None]
    for name in given[:1]:
        check = _SOURCES.get(name)
        found += check(volume[name], child(path, name)) if check is not None else []
    found += [forbidden(child(path, name), _ONE_SOURCE) for name in given[1:]]
    return found if given else [required(path, "must specify a volume type")]


def backstep_errors(text: str, path: str) -> list[FieldError]:
    """Return an error if a path has the element ``..``."""
    return [invalid(path, text, "must not contain '..'")] if ".." in text.split("/") else []


def descending_path_errors(text: str, path: str) -> list[FieldError]:
    found = [invalid(path, text, "must be a relative path")] if text.startswith("/") else []
    return found + backstep_errors(text, path)


def _local_path_errors(text: str, path: str) -> list[FieldError]:
    found = descending_path_errors(text, path)
    if text.startswith("..") and not text.startswith("../"):
        found.append(invalid(path, text, "must not start with '..'"))
    return found


def _mode_errors(obj: Object, path: str, name: str = "defaultMode") -> list[FieldError]:
    mode = obj.get(name)
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [invalid(child(path, name), mode, _MODE_TEXT)]


def _key_path_errors(items: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, item in enumerate(items):
        where = index(path, position)
        if not item.get("key"):
            found.append(required(child(where, "key")))
        if not item.get("path"):
            found.append(required(child(where, "path")))
        found += _local_path_errors(item.get("path", ""), child(where, "path"))
        found += _mode_errors(item, where, "mode")
    return found


def _empty_dir(source: Object, path: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is None or quantity_value(limit) >= 0:
        return []
    text = "SizeLimit field must be a valid resource quantity"
    return [forbidden(child(path, "sizeLimit"), text)]


def _host_path(source: Object, path: str) -> list[FieldError]:
    text, type = source.get("path", ""), source.get("type") or ""
    where = child(path, "path")
    found = backstep_errors(text, where) if text else [required(where)]
    if type not in HOST_PATH_TYPES:
        found.append(not_supported(child(path, "type"), type, HOST_PATH_TYPES))
    return found


def _named_files(member: str) -> Callable[[Object, str], list[FieldError]]:
    def check(source: Object, path: str) -> list[FieldError]:
        found = [] if source.get(member) else [required(child(path, member))]
        found += _mode_errors(source, path)
        return found + _key_path_errors(source.get("items") or [], child(path, "items"))

    return check


def _nfs(source: Object, path: str) -> list[FieldError]:
    found = [] if source.get("server") else [required(child(path, "server"))]
    where, text = child(path, "path"), source.get("path", "")
    if not text:
        found.append(required(where))
    elif not text.startswith("/"):
        found.append(invalid(where, text, "must be an absolute path"))
    return found


def _downward(source: Object, path: str) -> list[FieldError]:
    found = _mode_errors(source, path)
    return found + _downward_items(source.get("items") or [], child(path, "items"))


def _downward_items(items: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, item in enumerate(items):
        where = index(path, position)
        if not item.get("path"):
            found.append(required(child(where, "path")))
        found += _local_path_errors(item.get("path", ""), child(where, "path"))
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field is not None:
            found += field_ref_errors(field, child(where, "fieldRef"), VOLUME_FIELDS)
            if resource is not None:
                text = "fieldRef and resourceFieldRef can not be specified simultaneously"
                found.append(invalid(where, "resource", text))
        elif resource is not None:
            ref = child(where, "resourceFieldRef")
            found += resource_ref_errors(resource, ref, in_volume=True)
        else:
            found.append(required(where, "one of fieldRef and resourceFieldRef is required"))
        found += _mode_errors(item, where, "mode")
    return found


def _claim(source: Object, path: str) -> list[FieldError]:
    return [] if source.get("claimName") else [required(child(path, "claimName"))]


def _projected(source: Object, path: str) -> list[FieldError]:
    found = _mode_errors(source, path)
    for position, one in enumerate(source.get("sources") or ()):
        where = index(child(path, "sources"), position)
        given = [name for name in _PROJECTIONS if one.get(name) is not None]
        for name in given[:1]:
            found += _PROJECTIONS[name](one[name], child(where, name))
        if len(given) > 1:
            text = "may not specify more than 1 volume type per source"
            found += [forbidden(child(where, name), text) for name in given[1:]]
    return found


def _named_projection(source: Object, path: str) -> list[FieldError]:
    found = [] if source.get("name") else [required(child(path, "name"))]
    return found + _key_path_errors(source.get("items") or [], child(path, "items"))


def _downward_projection(source: Object, path: str) -> list[FieldError]:
    return _downward_items(source.get("items") or [], child(path, "items"))


def _token(source: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seconds, where = source.get("expirationSeconds", 0), child(path, "expirationSeconds")
    if seconds < _LEAST_TOKEN:
        found.append(invalid(where, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _MOST_TOKEN:
        found.append(invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))
    if not source.get("path"):
        found.append(required(child(path, "path")))
    return found


def _csi(source: Object, path: str) -> list[FieldError]:
    driver, where = source.get("driver", ""), child(path, "driver")
    if not driver:
        return [required(where)]
    if len(driver) > 63:
        return [invalid(where, driver, "must be no more than 63 characters")]
    return name_errors(driver.lower(), where)


def _ephemeral(source: Object, path: str) -> list[FieldError]:
    if source.get("volumeClaimTemplate") is None:
        return [required(child(path, "volumeClaimTemplate"))]
    return []


def _image(source: Object, path: str) -> list[FieldError]:
    found = [] if source.get("reference") else [required(child(path, "reference"))]
    policies = ("Always", "IfNotPresent", "Never")
    policy = source.get("pullPolicy", "")
    if policy not in policies:
        found.append(not_supported(child(path, "pullPolicy"), policy, policies))
    return found


Check = Callable[[Object, str], list[FieldError]]
_SOURCES: Mapping[str, Check] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _named_files("secretName"),
    "nfs": _nfs,
    "configMap": _named_files("name"),
    "downwardAPI": _downward,
    "persistentVolumeClaim": _claim,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
_PROJECTIONS: Mapping[str, Check] = {
    "secret": _named_projection,
    "configMap": _named_projection,
    "downwardAPI": _downward_projection,
    "serviceAccountToken": _token,
}
_ORDER = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret",
    "nfs", "iscsi", "glusterfs", "flexVolume", "configMap", "rbd", "cinder", "cephfs",
    "downwardAPI", "persistentVolumeClaim", "fc", "flocker", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "quobyte", "azureDisk", "storageos", "portworxVolume", "scaleIO",
    "projected", "csi", "ephemeral", "image",
)  # fmt: skip
"""Upstream's lookup order: the first source found is the volume's."""
