"""Converts between a CRD and its models: reads a CRD's versions as models, and builds a CRD from
models.

Called by ``instar types`` and ``instar crd``. The class attribute ``__crd__`` of a model holds the
CRD fields that no schema expresses: group, scope, names and the other fields of ``spec`` except
``versions``, the settings of the class's own version, and the CRD's labels and annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from instar.base.json_values import Object, same_json
from instar.kube.api.crd import GROUP, KIND
from instar.kube.api.names import by_priority
from instar.kube.models.errors import ModelError
from instar.kube.models.from_schema import root_shape
from instar.kube.models.shapes import Frame, ModelShape
from instar.kube.models.to_schema import schema_of

_METADATA = ("labels", "annotations")
_FILLED_IN_FIELDS: dict[str, Any] = {
    "conversion": {"strategy": "None"},
    "preserveUnknownFields": False,
}
"""Values that the server fills in; fields with these values are left out."""


class VersionModel(NamedTuple):
    """A version of a CRD as a model."""

    kind: str
    version: str
    plural: str
    group: str
    shape: ModelShape
    crd: Object


def version_models(crd: Mapping[str, Any], versions: Sequence[str] = ()) -> Iterator[VersionModel]:
    """Yield the wanted versions, or all, of a CRD in v1 form."""
    spec = crd["spec"]
    group, names = spec["group"], spec["names"]
    for version in spec["versions"]:
        if versions and version["name"] not in versions:
            continue
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        api_version = f"{group}/{version['name']}"
        shape = root_shape(schema, api_version=api_version, kind=names["kind"])
        yield VersionModel(
            names["kind"],
            version["name"],
            names["plural"],
            group,
            shape,
            _crd_attribute(crd, version),
        )


def _crd_attribute(crd: Mapping[str, Any], version: Mapping[str, Any]) -> Object:
    spec = crd["spec"]
    kept = {
        name: value
        for name, value in spec.items()
        if name not in ("versions", "names") and not same_json(_FILLED_IN_FIELDS.get(name), value)
    }
    said: Object = {"group": kept.pop("group"), "scope": kept.pop("scope", "Namespaced")}
    said["names"] = _names(spec["names"])
    said |= kept
    said["version"] = {name: value for name, value in version.items() if name != "schema"}
    for name in _METADATA:
        value = crd.get("metadata", {}).get(name)
        if value:
            said[name] = value
    return said


def _names(names: Mapping[str, Any]) -> Object:
    """Return the names without those that a server defaults."""
    kind = names["kind"]
    filled = {"listKind": f"{kind}List", "singular": kind.lower()}
    return {name: value for name, value in names.items() if filled.get(name) != value}


class Defaults(NamedTuple):
    """Values from the command line for settings that a model lacks."""

    group: str = ""
    plural: str = ""
    scope: str = ""
    storage: str = ""


def build_crd(
    models: Sequence[tuple[str, ModelShape, Mapping[str, Any]]], defaults: Defaults
) -> Object:
    """Build one CRD from models: their labels for messages, their shapes, their ``__crd__``."""
    entries = [_entry(label, shape, crd, defaults) for label, shape, crd in models]
    spec: Object = {"names": {}}
    metadata: Object = {}
    for label, common, _ in entries:
        for name, value in common.items():
            if name == "names":
                _check_consistent(label, spec["names"], value)
            else:
                _check_consistent(label, metadata if name in _METADATA else spec, {name: value})
    versions = [version for _, _, version in entries]
    _check_versions(versions)
    _choose_storage(versions, defaults.storage)
    name = f"{spec['names']['plural']}.{spec['group']}"
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": KIND,
        "metadata": {"name": name, **metadata},
        "spec": {**spec, "versions": versions},
    }


def _check_consistent(label: str, known: Object, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if not same_json(known.setdefault(name, value), value):
            raise ModelError(f"{label}: another {name} than the models before it")


def _entry(
    label: str, shape: ModelShape, crd: Mapping[str, Any], defaults: Defaults
) -> tuple[str, Object, Object]:
    assert shape.members is not None
    frame = shape.members.frame or Frame("", "")
    group, _, version_name = frame.api_version.rpartition("/")
    common = {name: value for name, value in crd.items() if name != "version"}
    version = dict(crd.get("version") or {})
    common["group"] = defaults.group or common.get("group") or group
    version["name"] = version.get("name") or version_name
    if not common["group"] or not version["name"]:
        missing = "version" if common["group"] else "group"
        raise ModelError(
            f"{label} has no {missing}: give it apiVersion: Literal['group/version'], or a __crd__"
        )
    names = {"kind": frame.kind, **(common.get("names") or {})}
    names["plural"] = defaults.plural or names.get("plural") or plural_of(names["kind"])
    common["names"] = names
    common["scope"] = defaults.scope or common.get("scope") or "Namespaced"
    return label, common, _version(shape, version)


def _version(shape: ModelShape, version: Mapping[str, Any]) -> Object:
    name = version["name"]
    assert shape.members is not None
    has_status = any(member.name == "status" for member in shape.members.members)
    made: Object = {"name": name, "served": True, "schema": {"openAPIV3Schema": schema_of(shape)}}
    if has_status and len(version) == 1:
        made["subresources"] = {"status": {}}
    return made | dict(version)


def _check_versions(versions: Sequence[Mapping[str, Any]]) -> None:
    names = [version["name"] for version in versions]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(f"version {twice[0]} has two models")


def _choose_storage(versions: list[Object], wanted: str) -> None:
    """Set the storage version: the named one, the marked one, or the most mature."""
    names = [version["name"] for version in versions]
    if wanted and wanted not in names:
        raise ModelError(f"no model is of version {wanted}: there are {', '.join(names)}")
    marked = [version["name"] for version in versions if version.get("storage") is True]
    chosen = [wanted] if wanted else marked or by_priority(names)[:1]
    for version in versions:
        version["storage"] = version["name"] in chosen


def plural_of(kind: str) -> str:
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"
