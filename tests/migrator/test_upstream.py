"""``instar migrate`` on a server that behaves as kube-apiserver does where ours is kinder."""

from __future__ import annotations

import threading
from pathlib import Path

from instar.base.json_values import Object
from instar.tools.migrator.outcomes import Fate
from instar.tools.migrator.ownership import entries_of
from instar.tools.migrator.progress_file import ProgressFile
from tests.migrator.running import Silent, instar, migrated
from tests.migrator.support import (
    census,
    crd,
    edit_crd,
    fill,
    group_of,
    lossy_crd,
    migrating_condition,
    name_of,
    objects_path,
    stale_crd,
    store_at,
    stored_versions,
)
from tests.migrator.upstream import Upstream
from tests.support.server import LiveServer


def _in_namespace(server: LiveServer, definition: Object, name: str = "doomed") -> str:
    """An object in a namespace of its own; the namespace's name."""
    namespace = group_of(definition).replace(".", "-")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    server.request("POST", "/api/v1/namespaces", body)
    obj = {
        "apiVersion": f"{group_of(definition)}/v1beta1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1},
    }
    path = objects_path(definition, "v1beta1", namespace=namespace)
    assert server.request("POST", path, obj).status == 201
    return namespace


def _apply(server: LiveServer, definition: Object, version: str, manager: str, **spec: str) -> None:
    obj = {
        "apiVersion": f"{group_of(definition)}/{version}",
        "kind": "Widget",
        "metadata": {"name": "w00000"},
        "spec": spec,
    }
    path = f"{objects_path(definition, version, 'w00000')}?fieldManager={manager}"
    kind = "application/apply-patch+yaml"
    assert server.request("PATCH", path, obj, content_type=kind).status in (200, 201)


def _managers(server: LiveServer, definition: Object, name: str = "w00000") -> dict[str, Object]:
    obj = server.request("GET", objects_path(definition, "v1", name)).json
    return {entry["manager"]: entry for entry in obj["metadata"].get("managedFields", [])}


def _drop_version(server: LiveServer, definition: Object) -> None:
    def change(current: Object) -> None:
        current["spec"]["versions"] = [v for v in current["spec"]["versions"] if v["name"] == "v1"]

    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name_of(definition)}/status"
    patch = {"status": {"storedVersions": ["v1"]}}
    kind = "application/merge-patch+json"
    assert server.request("PATCH", path, patch, content_type=kind).status == 200
    edit_crd(server, definition, change)


def test_an_object_whose_namespace_was_finalized_by_force_keeps_stored_versions(
    cluster: Upstream,
) -> None:
    definition = crd()
    cluster.create_crd(definition)
    fill(cluster, definition, 3)
    namespace = _in_namespace(cluster, definition)
    store_at(cluster, definition, "v1")
    cluster.lost_namespaces.add(namespace)

    report = migrated(cluster, definition)

    assert report.counts == {Fate.REWRITTEN: 3, Fate.FAILED: 1}
    (stuck,) = report.quarantine
    assert (stuck.key, stuck.reason) == (f"{namespace}/doomed", "NamespaceGone")
    assert f"kubectl create namespace {namespace}" in stuck.fix
    assert "kubectl delete widgets." in stuck.fix
    assert not report.pruned
    assert stored_versions(cluster, definition) == ["v1beta1", "v1"]
    assert census(cluster, definition) == {"v1": 3, "v1beta1": 1}


def test_with_the_namespace_back_the_same_run_continues_to_the_end(
    cluster: Upstream, tmp_path: Path
) -> None:
    definition = crd()
    cluster.create_crd(definition)
    namespace = _in_namespace(cluster, definition)
    store_at(cluster, definition, "v1")
    cluster.lost_namespaces.add(namespace)
    journal = ProgressFile(tmp_path / "journal")
    migrated(cluster, definition, journal=journal)
    cluster.lost_namespaces.clear()

    report = migrated(cluster, definition, journal=journal)

    journal.close()
    assert report.ok, report.lines()
    assert stored_versions(cluster, definition) == ["v1"]


def test_a_failed_object_that_is_deleted_afterwards_is_not_a_failure_any_more(
    cluster: Upstream, tmp_path: Path
) -> None:
    definition = crd()
    cluster.create_crd(definition)
    namespace = _in_namespace(cluster, definition)
    store_at(cluster, definition, "v1")
    cluster.lost_namespaces.add(namespace)
    journal = ProgressFile(tmp_path / "journal")
    assert not migrated(cluster, definition, journal=journal).ok
    path = objects_path(definition, "v1", "doomed", namespace)
    assert cluster.request("DELETE", path).status == 200

    report = migrated(cluster, definition, journal=journal)

    journal.close()
    assert report.ok, report.lines()
    assert report.counts == {Fate.GONE: 1}


def test_an_object_the_first_pass_never_saw_is_rewritten_before_the_trim(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 5)
    cluster.hidden.add("w00003")

    class Showing(Silent):
        def begin(self, phase: str, total: int | None) -> None:
            if phase == "verifying":
                cluster.hidden.clear()

    report = migrated(cluster, definition, progress=Showing())

    assert report.ok, report.lines()
    assert report.verification is not None
    assert report.verification.late == 1
    assert census(cluster, definition) == {"v1": 5}


def test_an_object_nothing_accounts_for_keeps_stored_versions(cluster: Upstream) -> None:
    """It was there before the storage version was in effect, and no write of it gets through."""
    definition = stale_crd(cluster, 5)
    cluster.hidden.add("w00003")
    busy = {"kind": "Status", "reason": "ServiceUnavailable", "message": "later", "code": 503}

    def meddle(method: str, path: str, body: object) -> tuple[int, Object] | None:
        return (503, busy) if method == "PATCH" and path.endswith("w00003") else None

    class Showing(Silent):
        def begin(self, phase: str, total: int | None) -> None:
            if phase == "verifying":
                cluster.hidden.clear()

    cluster.meddle = meddle
    report = migrated(cluster, definition, progress=Showing())

    assert not report.pruned
    assert stored_versions(cluster, definition) == ["v1beta1", "v1"]
    assert any("default/w00003" in line for line in report.lines())


def test_owners_of_a_vanished_version_are_carried_over_not_wiped(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 1)
    _apply(cluster, definition, "v1beta1", "argocd", host="host-0")
    _apply(cluster, definition, "v1", "flux", port="0")
    migrated(cluster, definition)
    _drop_version(cluster, definition)

    report = migrated(cluster, definition, forced=True)

    assert report.ok, report.lines()
    managers = _managers(cluster, definition)
    assert {"argocd", "flux"} <= managers.keys()
    assert managers["argocd"]["apiVersion"] == f"{group_of(definition)}/v1"
    assert managers["argocd"]["fieldsV1"] == {"f:spec": {"f:host": {}}}


def test_an_owner_that_was_carried_over_still_removes_what_it_no_longer_applies(
    cluster: Upstream,
) -> None:
    definition = stale_crd(cluster, 1)
    cluster.request("DELETE", objects_path(definition, "v1", "w00000"))
    _apply(cluster, definition, "v1beta1", "argocd", host="a", port="1")
    migrated(cluster, definition, forced=True)
    _drop_version(cluster, definition)
    migrated(cluster, definition, forced=True)

    _apply(cluster, definition, "v1", "argocd", host="a")

    assert server_object(cluster, definition)["spec"] == {"host": "a"}


def server_object(server: LiveServer, definition: Object, name: str = "w00000") -> Object:
    found: Object = server.request("GET", objects_path(definition, "v1", name)).json
    return found


def test_ownership_wiped_by_a_hiccup_of_the_webhook_is_given_back(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 6)
    calls = 0

    def sometimes(obj: Object) -> bool:
        nonlocal calls
        calls += 1
        return calls % 2 == 1

    def planned() -> None:
        cluster.wipes = sometimes

    report = migrated(cluster, definition, planned=planned, concurrency=1)

    assert report.ok, report.lines()
    assert report.restored > 0
    for number in range(6):
        assert _managers(cluster, definition, f"w{number:05d}"), "nobody owns it any more"


def test_ownership_that_cannot_be_restored_is_not_a_success(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 3)

    def planned() -> None:
        cluster.wipes = lambda obj: True

    report = migrated(cluster, definition, planned=planned)

    assert not report.pruned
    assert [item.reason for item in report.quarantine] == ["OwnershipLost"] * 3
    assert f"--accept {report.quarantine[0].key}" in report.quarantine[0].fix


def test_owners_that_one_run_could_not_keep_are_written_by_the_next(
    cluster: Upstream, tmp_path: Path
) -> None:
    definition = stale_crd(cluster, 5)
    before = {number: _managers(cluster, definition, f"w{number:05d}") for number in range(5)}
    journal = ProgressFile(tmp_path / "x.progress")

    def planned() -> None:
        cluster.wipes = lambda obj: True

    first = migrated(cluster, definition, planned=planned, journal=journal)
    assert [item.key for item in first.quarantine] == [f"default/w{n:05d}" for n in range(5)]
    cluster.wipes = lambda obj: False
    again = migrated(cluster, definition, journal=journal)

    journal.close()
    assert again.ok, again.lines()
    for number, managers in before.items():
        assert _managers(cluster, definition, f"w{number:05d}").keys() >= managers.keys()


def test_twelve_seconds_without_a_server_cost_no_object(cluster: Upstream) -> None:
    """Shortened: patience runs out while the server is away, then it is back."""
    definition = stale_crd(cluster, 40)

    class Away(Silent):
        def advance(self, count: int) -> None:
            super().advance(count)
            if self.advanced == 25 and not cluster.down:
                cluster.down = True
                threading.Timer(0.15, lambda: setattr(cluster, "down", False)).start()

    report = migrated(cluster, definition, progress=Away(), concurrency=16, page=10)

    assert report.ok, report.lines()
    assert stored_versions(cluster, definition) == ["v1"]


def test_a_veto_of_a_policy_is_not_the_objects_fault(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 3)
    text = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
    veto = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": f'widgets "w00001" is forbidden: {text}',
        "reason": "Invalid",
        "details": {"causes": [{"message": text}]},
        "code": 422,
    }

    def meddle(method: str, path: str, body: object) -> tuple[int, Object] | None:
        return (422, veto) if method == "PATCH" and path.endswith("w00001") else None

    cluster.meddle = meddle
    report = migrated(cluster, definition)

    (vetoed,) = report.quarantine
    assert vetoed.reason == "PolicyVeto"
    assert "the admission policy must let an unchanged object pass" in vetoed.fix


def test_a_dry_run_needs_no_permission_to_write_the_crds_status(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 2)
    asked: list[str] = []

    def meddle(method: str, path: str, body: object) -> tuple[int, Object] | None:
        if not path.endswith("selfsubjectaccessreviews") or not isinstance(body, dict):
            return None
        attributes = body["spec"]["resourceAttributes"]
        asked.append(f"{attributes['verb']} {attributes.get('subresource', '')}".strip())
        return 201, {"status": {"allowed": attributes.get("subresource") != "status"}}

    cluster.meddle = meddle
    dry = instar(cluster, "migrate", name_of(definition), "--dry-run")
    plan = instar(cluster, "migrate", name_of(definition), "--plan")

    assert dry.returncode == 0, dry.stdout + dry.stderr
    assert "missing permission: patch customresourcedefinitions/status" in plan.stdout


def test_the_plan_counts_the_settling_in(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 2)

    plan = instar(cluster, "migrate", name_of(definition), "--plan", "--settle", "33")

    assert "33 s of them to settle" in plan.stdout


def test_the_reason_of_a_wait_is_printed(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 2)

    done = instar(cluster, "migrate", name_of(definition), "--settle", "0.2")

    assert done.returncode == 0, done.stdout
    assert "waiting 0.2 s for every API server to know the CRD" in done.stderr
    assert migrating_condition(cluster, definition)["reason"] == "MigrationSucceeded"


def test_the_guides_output_for_a_kube_apiserver_is_what_is_printed(cluster: Upstream) -> None:
    """The table "On a kube-apiserver" of the guide, in the words of the commands."""
    definition = stale_crd(cluster, 3)
    name = name_of(definition)

    counted = instar(cluster, "census", name)
    shown = instar(cluster, "versions", name)
    refused = instar(cluster, "versions", name, "unserve", "v1beta1")
    planned = instar(cluster, "migrate", name, "--plan")
    done = instar(cluster, "migrate", name, "--settle", "0.1")

    assert "3 objects (an estimate: " in counted.stdout
    assert "  v1                 0 to 3  storage version" in counted.stdout
    assert "requests: not counted by this server; pass --audit-log FILE" in shown.stdout
    assert "no requests are counted here: give audit logs (--audit-log)" in refused.stderr
    assert "10 s of them to settle" in planned.stdout
    assert "  stored: " not in planned.stdout
    assert done.returncode == 0
    assert "storedVersions is now v1" in done.stdout


def test_a_run_keeps_owners_that_the_server_takes_at_one_version_only(cluster: Upstream) -> None:
    """As with a default that only the storage version has: then no entry of another version is
    taken, and without another try the objects would lose every owner.
    """
    definition = stale_crd(cluster, 3)
    before = {number: _managers(cluster, definition, f"w{number:05d}") for number in range(3)}
    other = f"{group_of(definition)}/v1beta1"

    def planned() -> None:
        cluster.wipes = lambda obj: any(item["apiVersion"] == other for item in entries_of(obj))

    report = migrated(cluster, definition, planned=planned)

    assert report.ok, report.lines()
    assert report.restored == 3
    for number, managers in before.items():
        assert _managers(cluster, definition, f"w{number:05d}").keys() >= managers.keys()


def test_an_owner_of_a_field_that_the_user_lets_go_is_not_missed(cluster: Upstream) -> None:
    """The field has no place at the version at which the server takes owners."""
    definition = lossy_crd(cluster, 3, range(3))
    other = f"{group_of(definition)}/v1beta1"

    def planned() -> None:
        cluster.wipes = lambda obj: any(item["apiVersion"] == other for item in entries_of(obj))

    report = migrated(cluster, definition, planned=planned, accept_changes=("spec.legacy",))

    assert report.ok, report.lines()
    assert report.restored == 3
    for number in range(3):
        assert _managers(cluster, definition, f"w{number:05d}")
