"""Defaults as clients see them: of the status, of resources inside resources."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.support import Collection, make_crd, version
from tests.support.server import LiveServer

WAITING = {"conditions": [{"type": "Accepted", "status": "Unknown"}]}
STATUS = {
    "type": "object",
    "default": WAITING,
    "properties": {
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
            },
        }
    },
}


def with_status(status: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return version("v1", schema=schema, subresources={"status": {}}, **more)


@pytest.mark.parametrize("stored_elsewhere", [False, True])
def test_the_status_a_create_drops_is_defaulted_for_its_readers(
    server: LiveServer, stored_elsewhere: bool
) -> None:
    group = f"status{int(stored_elsewhere)}.defaults.io"
    versions = [with_status(STATUS, storage=not stored_elsewhere)]
    if stored_elsewhere:
        versions.append({**versions[0], "name": "v2", "storage": True})
    server.create_crd(make_crd(group, versions))
    foos = Collection(server, group)

    created = foos.create("one", spec={"a": "x"}, status={"conditions": []})

    assert created["status"] == WAITING
    assert foos.get("one")["status"] == WAITING
    listed = foos.request("GET").json["items"]
    assert [item["status"] for item in listed] == [WAITING]


def test_a_dry_run_shows_the_defaulted_status(server: LiveServer) -> None:
    server.create_crd(make_crd("dry.defaults.io", [with_status(STATUS, storage=True)]))
    foos = Collection(server, "dry.defaults.io")

    answer = foos.request("POST", "?dryRun=All", foos.obj("one"))

    assert (answer.status, answer.json["status"]) == (201, WAITING)


def test_the_status_of_the_default_survives_an_update(server: LiveServer) -> None:
    server.create_crd(make_crd("kept.defaults.io", [with_status(STATUS, storage=True)]))
    foos = Collection(server, "kept.defaults.io")
    created = foos.create("one", spec={"a": "x"})

    updated = foos.put({**created, "spec": {"a": "y"}, "status": {"conditions": []}})

    assert (updated.status, updated.json["status"]) == (200, WAITING)


RESOURCE = {"apiVersion": "foos/v1", "kind": "Foo", "metadata": {"name": "Bar"}}
WITH_UNKNOWN = {**RESOURCE, "metadata": {"name": "Bar", "unknown": "unknown"}}
EMBEDDED: dict[str, Any] = {"type": "object", "x-kubernetes-embedded-resource": True}
PRESERVING = {**EMBEDDED, "x-kubernetes-preserve-unknown-fields": True}
TEXT = {"type": "string"}
IDENTITY = {"apiVersion": {**TEXT, "default": "foos/v1"}, "kind": {**TEXT, "default": "Foo"}}
META_FIELDS = {
    "type": "object",
    "properties": {
        "name": {**TEXT, "default": "Bar"},
        "unknown": {**TEXT, "default": "unknown"},
    },
}
META_WHOLE = {"type": "object", "default": WITH_UNKNOWN["metadata"]}


def _variants() -> dict[str, tuple[dict[str, Any], Any]]:
    """Name → its schema and what a client sends there; nothing where that is None."""
    found: dict[str, tuple[dict[str, Any], Any]] = {}
    for prefix, kind in (("", EMBEDDED), ("preserve-", PRESERVING)):
        some = {"properties": {"foo": TEXT}} if kind is EMBEDDED else {}
        fields = {"properties": {**IDENTITY, "metadata": META_FIELDS}}
        metadata = {"properties": {**IDENTITY, "metadata": META_WHOLE}}
        around = {
            "type": "object",
            "default": {"embedded": WITH_UNKNOWN},
            "properties": {"embedded": {**kind, **some}},
        }
        found[f"{prefix}fields"] = {**kind, **fields}, {"metadata": {}}
        found[f"{prefix}whole-metadata"] = {**kind, **metadata}, {}
        found[f"{prefix}whole-object"] = {**kind, **some, "default": WITH_UNKNOWN}, None
        found[f"{prefix}spanning"] = around, None
    return found


def test_defaults_in_metadata_keep_fields_of_object_meta(server: LiveServer) -> None:
    variants = _variants()
    schema = {"type": "object", "properties": {name: item for name, (item, _) in variants.items()}}
    group = "meta.defaults.io"
    server.create_crd(make_crd(group, [version("v1", storage=True, schema=schema)]))
    foos = Collection(server, group)
    sent = {name: value for name, (_, value) in variants.items() if value is not None}

    created = foos.create("one", **sent)

    for shown in (created, foos.get("one")):
        for name in variants:
            found = shown[name]["embedded"] if name.endswith("spanning") else shown[name]
            assert found == RESOURCE, name


def test_a_crd_is_stored_with_the_metadata_of_its_defaults_cleaned(server: LiveServer) -> None:
    schema = {
        "type": "object",
        "properties": {
            "whole": {**PRESERVING, "default": WITH_UNKNOWN},
            "inside": {**EMBEDDED, "properties": {**IDENTITY, "metadata": META_WHOLE}},
        },
    }
    written = make_crd("clean.defaults.io", [version("v1", storage=True, schema=schema)])

    answer = server.request(
        "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", written
    )

    assert answer.status == 201, answer.text
    stored = answer.json["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert stored["whole"]["default"] == RESOURCE
    assert stored["inside"]["properties"]["metadata"]["default"] == WITH_UNKNOWN["metadata"]
