"""What a running server does, without a word of what it says."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.wire.client.paths import crd_path
from tests.migrator.support import (
    census,
    crd,
    edit_crd,
    fill,
    group_of,
    name_of,
    store_at,
    stored_versions,
)
from tests.support.server import Answer, LiveServer, live_server
from tests.support.waiting import eventually

Facts = Any
_MIGRATIONS = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"


def of_requests() -> Facts:
    """Codes, reasons and the places of refused requests."""
    with live_server(storage="memory:") as server:
        definition = crd()
        group = group_of(definition)
        path = f"/apis/{group}/v1/namespaces/default/widgets"
        widget: Object = {
            "apiVersion": f"{group}/v1",
            "kind": "Widget",
            "metadata": {"name": "a"},
            "spec": {"size": 1},
        }
        bad = {**definition, "spec": {**definition["spec"], "scope": "Everywhere", "group": ""}}
        server.create_crd(definition)
        answers = [
            server.request("POST", crd_path(""), bad),
            server.request("POST", path, {**widget, "spec": {"size": "one"}}),
            server.request("POST", f"{path}?fieldValidation=Strict", {**widget, "extra": 1}),
            server.request("POST", path, {**widget, "metadata": {"name": "a", "labels": {"a": 1}}}),
            server.request("POST", path, widget),
            server.request("POST", path, widget),
            server.request("PUT", f"{path}/a", {**widget, "kind": "Other"}),
            server.request("GET", f"{path}/b"),
            server.request("DELETE", f"{path}/a", {"preconditions": {"uid": "other"}}),
        ]
        return [_answer(item) for item in answers]


def _answer(answer: Answer) -> Facts:
    body = answer.json
    causes = (body.get("details") or {}).get("causes") or ()
    return answer.status, body.get("reason"), [(i.get("reason"), i.get("field")) for i in causes]


def of_migrations() -> Facts:
    """Migrations that succeed, fail on an object, and find other objects left over."""
    with live_server(storage="memory:") as server:
        return [_migrated(server, tighten) for tighten in (False, True)]


def _migrated(server: LiveServer, tighten: bool) -> Facts:
    definition = crd()
    server.create_crd(definition)
    fill(server, definition, 20)
    store_at(server, definition, "v1")
    if tighten:
        edit_crd(server, definition, _refuse_seven)
    name = f"one-{group_of(definition)}"
    asked = {"group": group_of(definition), "resource": "widgets"}
    migration: Object = {
        "apiVersion": "storagemigration.k8s.io/v1",
        "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": asked},
    }
    assert server.request("POST", _MIGRATIONS, migration).status == 201
    ended = eventually(lambda: _ended(server, name))
    crd_now = server.request("GET", crd_path(name_of(definition))).json
    return (
        ended,
        _conditions(crd_now),
        stored_versions(server, definition),
        census(server, definition),
    )


def _refuse_seven(current: Object) -> None:
    for item in current["spec"]["versions"]:
        rule = {"rule": "self.size != 7 || oldSelf.hasValue() && false", "optionalOldSelf": True}
        spec = item["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["x-kubernetes-validations"] = [rule]


def _ended(server: LiveServer, name: str) -> Facts | None:
    found = _conditions(server.request("GET", f"{_MIGRATIONS}/{name}").json)
    return found if ("Running", "False", "MigrationCompleted") in found else None


def _conditions(obj: Object) -> list[Facts]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return sorted((item["type"], item["status"], item["reason"]) for item in conditions)
