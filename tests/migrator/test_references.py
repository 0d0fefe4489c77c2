"""Owner references and ownership entries that name a version on its way out."""

from __future__ import annotations

from instar.base.json_values import Object
from tests.migrator.running import instar, migrated
from tests.migrator.support import edit_crd, group_of, name_of, objects_path, stale_crd
from tests.migrator.upstream import Upstream
from tests.support.server import LiveServer
from tests.support.webhook import Webhook


def _own_a_config_map(server: LiveServer, definition: Object) -> str:
    """A ConfigMap owned by the first widget by way of v1beta1; its path."""
    owner = server.request("GET", objects_path(definition, "v1", "w00000")).json["metadata"]
    name = group_of(definition).replace(".", "-")
    reference = {
        "apiVersion": f"{group_of(definition)}/v1beta1",
        "kind": "Widget",
        "name": owner["name"],
        "uid": owner["uid"],
        "controller": True,
    }
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [reference]},
        "data": {"a": "b"},
    }
    assert server.request("POST", "/api/v1/namespaces/default/configmaps", body).status == 201
    return f"/api/v1/namespaces/default/configmaps/{name}"


def _unserve(server: LiveServer, definition: Object) -> None:
    def change(current: Object) -> None:
        current["spec"]["versions"][0]["served"] = False

    edit_crd(server, definition, change)


def test_a_version_owner_references_name_is_not_removed_until_they_are_repointed(
    server: LiveServer,
) -> None:
    definition = stale_crd(server, 2)
    name = name_of(definition)
    dependent = _own_a_config_map(server, definition)
    migrated(server, definition)
    _unserve(server, definition)

    refused = instar(server, "versions", name, "remove", "v1beta1")
    repointed = instar(server, "migrate", name, "--owner-references", "--clean-managed-fields")
    removed = instar(server, "versions", name, "remove", "v1beta1")

    assert refused.returncode == 1
    assert "owner references of 1 object name it (configmaps default/" in refused.stderr
    assert f"run instar migrate {name} --owner-references" in refused.stderr
    assert repointed.returncode == 0, repointed.stdout + repointed.stderr
    assert "now naming v1: 1" in repointed.stdout
    assert removed.returncode == 0, removed.stderr
    assert "owner references of 1 object" not in removed.stderr
    found = server.request("GET", dependent).json
    (reference,) = found["metadata"]["ownerReferences"]
    assert reference["apiVersion"] == f"{group_of(definition)}/v1"
    assert reference["controller"] is True
    assert found["data"] == {"a": "b"}


def test_a_plan_finds_owner_references_and_changes_none(server: LiveServer) -> None:
    definition = stale_crd(server, 1)
    dependent = _own_a_config_map(server, definition)
    before = server.request("GET", dependent).json
    _unserve(server, definition)

    planned = instar(server, "migrate", name_of(definition), "--owner-references", "--plan")

    assert "owner references at leaving versions: 1" in planned.stdout
    assert server.request("GET", dependent).json == before


def test_removing_a_version_that_entries_name_says_so_and_offers_the_cure(
    server: LiveServer,
) -> None:
    definition = stale_crd(server, 3)
    name = name_of(definition)
    migrated(server, definition)
    _unserve(server, definition)

    dry = instar(server, "versions", name, "remove", "v1beta1", "--dry-run")

    assert dry.returncode == 0
    assert "warning: managedFields of 3 objects name v1beta1" in dry.stderr
    assert f"instar migrate {name} --clean-managed-fields" in dry.stderr


def test_with_the_webhook_down_versions_and_census_tell_what_can_be_read(
    cluster: Upstream,
) -> None:
    with Webhook() as hook:
        definition = stale_crd(cluster, 4, conversion=hook.conversion())
        name = name_of(definition)
        hook.fault = "http_500"
        # Every version needs the webhook now: half of the objects are stored in each.
        cluster.meddle = _lists_fail
        shown = instar(cluster, "versions", name)
        counted = instar(cluster, "census", name)
        back = instar(cluster, "versions", name, "storage", "v1beta1")

    assert shown.returncode == 0, shown.stderr
    assert "the objects cannot be listed now" in shown.stdout
    assert counted.returncode == 0, counted.stderr
    assert f"{name}: not counted" in counted.stdout
    assert back.returncode == 0, back.stderr


def _lists_fail(method: str, path: str, body: object) -> tuple[int, Object] | None:
    if method != "GET" or not path.endswith("/widgets"):
        return None
    text = "conversion webhook for example failed: connection refused"
    return 500, {"kind": "Status", "status": "Failure", "message": text, "code": 500}


def test_an_edit_meets_a_migration_with_its_reason_not_with_a_conflict(
    server: LiveServer,
) -> None:
    definition = stale_crd(server, 1)
    name = name_of(definition)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    current = server.request("GET", path).json
    condition = {
        "type": "StorageMigrating",
        "status": "True",
        "reason": "MigrationRunning",
        "message": "instar migrate (me) is running",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    current["status"]["conditions"].append(condition)
    assert server.request("PUT", f"{path}/status", current).status == 200

    refused = instar(server, "versions", name, "unserve", "v1beta1", "--clients-migrated")

    assert refused.returncode == 1
    assert "a migration is under way (instar migrate (me) is running)" in refused.stderr


def test_an_edit_that_meets_a_conflict_is_judged_anew_and_made(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 1)
    name = name_of(definition)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    met = False

    def meddle(method: str, target: str, body: object) -> tuple[int, Object] | None:
        nonlocal met
        if method == "PUT" and target == path and not met:
            met = True
            change = {"metadata": {"labels": {"touched": "yes"}}}
            kind = "application/merge-patch+json"
            assert cluster.request("PATCH", path, change, content_type=kind).status == 200
        return None

    cluster.meddle = meddle
    done = instar(cluster, "versions", name, "deprecate", "v1beta1")

    assert met
    assert done.returncode == 0, done.stderr
