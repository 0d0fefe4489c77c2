"""StorageVersionMigration on ``instar serve``: upstream's conditions, and no upstream defect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually
from tests.support.webhook import Webhook, relabel

_PATH = "/apis/storagemigration.k8s.io/{}/storageversionmigrations"


def _migration(definition: Object, name: str, version: str = "v1beta1", **resource: Any) -> Object:
    asked = {"group": group_of(definition), "resource": "widgets", **resource}
    return {
        "apiVersion": f"storagemigration.k8s.io/{version}",
        "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": asked},
    }


def _create(server: LiveServer, migration: Object) -> None:
    version = migration["apiVersion"].partition("/")[2]
    answer = server.request("POST", _PATH.format(version), migration)
    assert answer.status == 201, answer.text


def _conditions(server: LiveServer, name: str) -> dict[str, Object]:
    status = server.request("GET", f"{_PATH.format('v1')}/{name}").json.get("status") or {}
    return {item["type"]: item for item in status.get("conditions") or ()}


def _message(server: LiveServer, name: str) -> str:
    return str(_conditions(server, name).get("Running", {}).get("message", ""))


def _completed(server: LiveServer, name: str) -> dict[str, Object]:
    def check() -> dict[str, Object] | None:
        found = _conditions(server, name)
        return found if found.get("Running", {}).get("status") == "False" else None

    found: dict[str, Object] = eventually(check)
    return found


def _crd_condition(server: LiveServer, definition: Object) -> Object:
    current = server.request("GET", crd_path(name_of(definition))).json
    return next(i for i in current["status"]["conditions"] if i["type"] == "StorageMigrating")


@pytest.mark.parametrize("version", ["v1beta1", "v1"])
def test_a_migration_rewrites_every_object_and_prunes_stored_versions(
    server: LiveServer, version: str
) -> None:
    definition = crd()
    server.create_crd(definition)
    fill(server, definition, 250)
    store_at(server, definition, "v1")
    assert census(server, definition) == {"v1": 0, "v1beta1": 250}
    name = f"all-{version}-{group_of(definition)}"

    _create(server, _migration(definition, name, version))

    found = _completed(server, name)
    assert found["Succeeded"]["status"] == "True"
    assert found["Succeeded"]["reason"] == "StorageVersionMigrationSucceeded"
    assert found["Running"]["reason"] == "MigrationCompleted"
    assert found["Running"]["message"] == "Migration completed"
    assert census(server, definition) == {"v1": 250}
    assert stored_versions(server, definition) == ["v1"]
    condition = _crd_condition(server, definition)
    assert (condition["status"], condition["reason"]) == ("False", "MigrationSucceeded")
    assert condition["message"] == (
        "The migration has succeeded and the stored versions have been updated"
    )


def test_an_invalid_object_fails_the_migration_and_never_prunes(server: LiveServer) -> None:
    definition = crd()
    server.create_crd(definition)
    fill(server, definition, 20)
    store_at(server, definition, "v1")

    def tighten(current: Object) -> None:
        for item in current["spec"]["versions"]:
            rule = {"rule": "self.size != 7", "message": "seven is out"}
            spec = item["schema"]["openAPIV3Schema"]["properties"]["spec"]
            spec["x-kubernetes-validations"] = [{**rule, "optionalOldSelf": True}]
            spec["x-kubernetes-validations"][0]["rule"] += " || oldSelf.hasValue() && false"

    edit_crd(server, definition, tighten)
    name = f"bad-{group_of(definition)}"

    _create(server, _migration(definition, name))

    found = _completed(server, name)
    assert found["Failed"]["status"] == "True"
    assert found["Failed"]["reason"] == "StorageVersionMigrationFailed"
    assert found["Failed"]["message"].startswith("migration encountered unhandled error: Widget.")
    assert census(server, definition) == {"v1": 19, "v1beta1": 1}
    assert stored_versions(server, definition) == ["v1beta1", "v1"]
    condition = _crd_condition(server, definition)
    assert (condition["reason"], condition["message"]) == (
        "MigrationFailed",
        "The migration has failed",
    )


def test_a_webhook_outage_is_waited_out_and_shown(server: LiveServer) -> None:
    with Webhook(convert=relabel) as hook:
        definition = crd(conversion=hook.conversion())
        server.create_crd(definition)
        fill(server, definition, 30)
        store_at(server, definition, "v1")
        hook.fault = "http_500"
        name = f"outage-{group_of(definition)}"

        _create(server, _migration(definition, name))

        eventually(lambda: "30/30 objects" in _message(server, name))
        hook.fault = None
        found = _completed(server, name)
    assert found["Succeeded"]["status"] == "True"
    assert stored_versions(server, definition) == ["v1"]


def test_a_crd_changed_during_the_run_is_not_pruned(server: LiveServer) -> None:
    with Webhook(convert=relabel) as hook:
        definition = crd(conversion=hook.conversion())
        server.create_crd(definition)
        fill(server, definition, 5)
        store_at(server, definition, "v1")
        hook.pause()
        before = hook.reviews
        name = f"moved-{group_of(definition)}"
        _create(server, _migration(definition, name))
        hook.wait_for_calls(before + 1)

        def describe(current: Object) -> None:
            current["spec"]["names"]["shortNames"] = ["wdg"]

        edit_crd(server, definition, describe)
        hook.resume()
        _completed(server, name)
    assert stored_versions(server, definition) == ["v1beta1", "v1"]
    assert _crd_condition(server, definition)["message"] == (
        "The migration has succeeded but the stored versions have not been updated due to a "
        "generation mismatch"
    )


def test_a_condition_that_another_migrator_took_over_is_left_to_it(server: LiveServer) -> None:
    with Webhook(convert=relabel) as hook:
        definition = crd(conversion=hook.conversion())
        server.create_crd(definition)
        fill(server, definition, 5)
        store_at(server, definition, "v1")
        hook.pause()
        before = hook.reviews
        name = f"taken-{group_of(definition)}"
        _create(server, _migration(definition, name))
        hook.wait_for_calls(before + 1)
        theirs = {**_crd_condition(server, definition), "message": "somebody else is at it"}
        server.request(
            "PATCH",
            f"{crd_path(name_of(definition))}/status?fieldManager=somebody",
            {"status": {"conditions": [theirs]}},
            content_type="application/merge-patch+json",
        )
        hook.resume()
        found = _completed(server, name)
    assert found["Succeeded"]["status"] == "True"
    assert _crd_condition(server, definition) == theirs
    assert stored_versions(server, definition) == ["v1beta1", "v1"]


def test_the_oldest_of_several_goes_first_and_all_finish(server: LiveServer) -> None:
    definition = crd()
    server.create_crd(definition)
    fill(server, definition, 10)
    store_at(server, definition, "v1")
    names = [f"q{number}-{group_of(definition)}" for number in range(3)]

    for name in names:
        _create(server, _migration(definition, name))

    finished = [_completed(server, name)["Succeeded"]["status"] for name in names]
    assert finished == ["True"] * 3


def test_a_resource_that_cannot_be_migrated_fails(server: LiveServer) -> None:
    definition = crd()
    name = "reviews"

    _create(
        server,
        _migration(
            definition, name, group="authorization.k8s.io", resource="selfsubjectaccessreviews"
        ),
    )

    text = _completed(server, name)["Failed"]["message"]
    assert text.endswith("does not support discovery operations: [update patch list]")


def test_the_spec_is_immutable_and_the_resource_required(server: LiveServer) -> None:
    definition = crd()
    server.create_crd(definition)
    path = _PATH.format("v1beta1")
    missing = server.request("POST", path, _migration(definition, "none", resource=""))
    _create(server, _migration(definition, "fixed"))

    changed = server.request(
        "PATCH",
        f"{path}/fixed",
        {"spec": {"resource": {"resource": "gadgets"}}},
        content_type="application/merge-patch+json",
    )

    assert missing.status == 422
    assert "resource is required to be set" in missing.text
    assert changed.status == 422
    assert "spec: Invalid value" in changed.json["message"]
    assert "field is immutable" in changed.json["message"]


def test_the_status_cannot_go_back(server: LiveServer) -> None:
    definition = crd()
    server.create_crd(definition)
    _create(server, _migration(definition, "back"))
    _completed(server, "back")
    path = f"{_PATH.format('v1beta1')}/back/status"
    current = server.request("GET", path).json
    revised = {**current, "status": {**current["status"], "resourceVersion": "1"}}
    undone = {**current, "status": {**current["status"], "conditions": []}}

    first = server.request("PUT", path, revised)
    second = server.request("PUT", path, undone)

    assert "status.resourceVersion: Invalid value" in first.json["message"]
    assert "Success condition cannot be set to false once it is true" in second.json["message"]


def test_the_table_shows_resource_and_status(server: LiveServer) -> None:
    definition = crd()
    server.create_crd(definition)
    _create(server, _migration(definition, "shown"))
    _completed(server, "shown")
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    table = server.request("GET", f"{_PATH.format('v1')}/shown", headers=accept).json

    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Resource",
        "Status",
    ]
    assert table["rows"][0]["cells"] == ["shown", name_of(definition), "Succeeded"]


def test_a_migration_continues_after_a_restart(tmp_path: Path) -> None:
    storage = f"sqlite:{tmp_path / 'instar.db'}"
    with Webhook(convert=relabel) as hook:
        definition = crd(conversion=hook.conversion())
        with live_server(storage=storage) as server:
            server.create_crd(definition)
            fill(server, definition, 10)
            store_at(server, definition, "v1")
            hook.fault = "http_500"
            _create(server, _migration(definition, "interrupted"))
            eventually(lambda: "10/10" in _message(server, "interrupted"))

        hook.fault = None
        with live_server(storage=storage) as server:
            found = _completed(server, "interrupted")
            assert found["Succeeded"]["status"] == "True"
            assert stored_versions(server, definition) == ["v1"]


def test_a_crd_changed_before_a_restart_is_not_pruned(tmp_path: Path) -> None:
    storage = f"sqlite:{tmp_path / 'instar.db'}"
    with Webhook(convert=relabel) as hook:
        definition = crd(conversion=hook.conversion())
        with live_server(storage=storage) as server:
            server.create_crd(definition)
            fill(server, definition, 10)
            store_at(server, definition, "v1")
            hook.fault = "http_500"
            _create(server, _migration(definition, "interrupted"))
            eventually(lambda: "10/10" in _message(server, "interrupted"))

            def describe(current: Object) -> None:
                current["spec"]["names"]["shortNames"] = ["wdg"]

            edit_crd(server, definition, describe)

        hook.fault = None
        with live_server(storage=storage) as server:
            found = _completed(server, "interrupted")
            assert found["Succeeded"]["status"] == "True"
            assert stored_versions(server, definition) == ["v1beta1", "v1"]


def test_a_deleted_migration_stops(server: LiveServer) -> None:
    with Webhook(convert=relabel) as hook:
        definition = crd(conversion=hook.conversion())
        server.create_crd(definition)
        fill(server, definition, 5)
        store_at(server, definition, "v1")
        hook.fault = "http_500"
        name = f"unwanted-{group_of(definition)}"
        _create(server, _migration(definition, name))
        eventually(lambda: "5/5" in _message(server, name))

        server.request("DELETE", f"{_PATH.format('v1')}/{name}")

        eventually(lambda: _crd_condition(server, definition)["status"] == "False")
    assert stored_versions(server, definition) == ["v1beta1", "v1"]
