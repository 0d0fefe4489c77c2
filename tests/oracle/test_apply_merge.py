"""Applies and updates of several managers, at one version and across versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base.json_values import Object, copy_json, same_json
from instar.kube.apply.applying import Application, apply_patch
from instar.kube.apply.conflicts import ApplyConflict
from instar.kube.apply.conversion_requests import drive
from instar.kube.apply.field_set import parse
from instar.kube.apply.managed_fields import APPLY, UPDATE, decode
from instar.kube.apply.managers import Writer, track_update
from instar.kube.apply.ownership_schema import STRING, Atom, MapType, TypedSchema
from tests.oracle.cases import Case, Outcome, assert_agreement
from tests.oracle.typed_schemas import typed_schema

NOW = "2026-01-01T00:00:00Z"
VERSIONS = ("v1", "v2", "v3", "v4")


def judge(case: Case) -> Outcome:
    return _apply(case) if case.ask["check"] == "apply" else _update(case)


def _apply(case: Case) -> Outcome:
    ask = case.ask
    request = Application(
        Writer(ask["manager"], ask["version"], NOW),
        _at(ask["object"], ask["version"]),
        _live(ask),
        _schemas(ask),
        ask["force"],
    )
    try:
        applied = drive(apply_patch(request), _converter(ask))
    except ApplyConflict as conflict:
        return _same_conflicts(case, conflict)
    if "object" not in case.answer:
        return Outcome(False, False, applied)
    wanted = ask["live"] if case.answer["object"] is None else case.answer["object"]
    table = _table(applied.managed_fields)
    equal = same_json(_bare(applied.obj), wanted or {}) and table == _answered(case)
    return Outcome(equal, equal, (_bare(applied.obj), table))


def _same_conflicts(case: Case, conflict: ApplyConflict) -> Outcome:
    causes = (conflict.details or {})["causes"]
    ours = sorted((cause["message"].split('"')[1], cause["field"]) for cause in causes)
    theirs = case.answer.get("conflicts")
    same = theirs is not None and ours == sorted((one["manager"], one["path"]) for one in theirs)
    return Outcome(theirs is not None, same, ours)


def _update(case: Case) -> Outcome:
    ask, version = case.ask, case.ask["version"]
    live, new = _at(ask["live"] or {}, version), _at(ask["object"], version)
    convert = _converter(ask)
    before = decode(_managed(ask["managers"]))
    needed = {version, *(entry.api_version for entry in before.values())}

    def everywhere(obj: Object) -> dict[str, Object]:
        found = {name: convert(obj, name) for name in needed}
        return {name: shown for name, shown in found.items() if shown is not None}

    managed = track_update(
        before,
        Writer(ask["manager"], version, NOW),
        everywhere(live) if ask["live"] is not None else None,
        everywhere(new),
        _schemas(ask),
    )
    table = _table(managed)
    return Outcome(table == _answered(case), table == _answered(case), table)


def _schemas(ask: Mapping[str, Any]) -> dict[str, TypedSchema]:
    """Each version has its own type where names change with it, else all have one."""
    types = ask["schema"]["types"]
    return {
        name: _with_identity(typed_schema(ask["schema"], name if name in types else ""))
        for name in VERSIONS
        if name in types or not any(other in types for other in VERSIONS[1:])
    }


def _with_identity(schema: TypedSchema) -> TypedSchema:
    """The recorded schemas do not declare what every object here has."""
    root = schema.root.map or MapType(False, {}, None)
    fields = {**root.fields, "apiVersion": ("f:apiVersion", Atom(scalar=STRING))}
    return TypedSchema(
        Atom(
            scalar=schema.root.scalar,
            list=schema.root.list,
            map=MapType(root.atomic, fields, root.element),
            loose=True,
        )
    )


def _converter(ask: Mapping[str, Any]) -> Any:
    return _CONVERTERS[ask.get("converter")]


def _same_object(obj: Object, version: str) -> Object | None:
    return {**copy_json(obj), "apiVersion": version}


def _rename(obj: Object, version: str) -> Object | None:
    """Names that end in the version's name change with it."""
    suffix = obj["apiVersion"]

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name.removesuffix(suffix) + version if name.endswith(suffix) else name: renamed(v)
                for name, v in value.items()
            }
        return [renamed(item) for item in value] if isinstance(value, list) else value

    out: Object = renamed(obj)
    out["apiVersion"] = version
    return out


def _reliant(obj: Object, version: str) -> Object | None:
    """At v1 one field is made from another and cannot be without it."""
    if version != "v1":
        return _same_object(obj, version)
    if "required_field_bar" not in obj:
        return None
    made = {"field_foo_rely_on_bar": obj["required_field_bar"]}
    return {**copy_json(obj), **made, "apiVersion": version}


_CONVERTERS = {None: _same_object, "rename": _rename, "reliant": _reliant}


def _at(obj: Object, version: str) -> Object:
    return {**copy_json(obj), "apiVersion": version}


def _live(ask: Mapping[str, Any]) -> Object | None:
    if ask["live"] is None:
        return None
    managed = _managed(ask["managers"])
    return {**_at(ask["live"], ask["version"]), "metadata": {"managedFields": managed}}


def _bare(obj: Object) -> Object:
    unseen = ("apiVersion", "kind", "metadata")
    return {name: value for name, value in obj.items() if name not in unseen}


def _managed(managers: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "manager": name,
            "operation": APPLY if entry["applied"] else UPDATE,
            "apiVersion": entry["version"],
            "fieldsType": "FieldsV1",
            "fieldsV1": entry["set"],
        }
        for name, entry in managers.items()
    ]


def _table(managed: list[dict[str, Any]] | None) -> dict[str, Any]:
    return {
        entry["manager"]: (
            entry["operation"] == APPLY,
            entry["apiVersion"],
            parse(entry["fieldsV1"]),
        )
        for entry in managed or ()
    }


def _answered(case: Case) -> dict[str, Any]:
    return {
        name: (entry["applied"], entry["version"], parse(entry["set"]))
        for name, entry in case.answer["managers"].items()
    }


def test_managers_and_objects_as_upstream() -> None:
    assert_agreement("apply-merge", judge)
