"""``instar upgrade`` as a user runs it, against a live server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from instar.base.json_values import Object
from instar.wire.client.paths import crd_path
from tests.migrator.running import instar
from tests.migrator.support import (
    census,
    crd,
    fill,
    name_of,
    objects_path,
    schema,
    stored_versions,
    with_legacy,
)
from tests.migrator.upstream import Upstream, upstream
from tests.support.server import LiveServer
from tests.support.webhook import Webhook, relabel


@pytest.fixture
def cluster(server: LiveServer, tmp_path: Path) -> Iterator[Upstream]:
    with upstream(server, tmp_path) as proxy:
        yield proxy


def written(folder: Path, definition: Object, *versions: str, storage: str) -> str:
    """The CRD with these versions in a file, as a release brings it; the file."""
    document = json.loads(json.dumps(definition))
    model = document["spec"]["versions"][0]
    document["spec"]["versions"] = [
        {**model, "name": name, "served": True, "storage": name == storage} for name in versions
    ]
    path = folder / "release.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def _installed(server: LiveServer, tmp_path: Path, count: int = 5) -> Object:
    definition = crd()
    release = written(tmp_path, definition, "v1beta1", storage="v1beta1")
    done = instar(server, "upgrade", release)
    assert done.returncode == 0, done.stdout + done.stderr
    fill(server, definition, count)
    return definition


def _versions(server: LiveServer, definition: Object) -> list[str]:
    found = server.request("GET", crd_path(name_of(definition))).json
    return [version["name"] for version in found["spec"]["versions"]]


def test_a_crd_the_cluster_does_not_have_is_created(server: LiveServer, tmp_path: Path) -> None:
    definition = crd()
    release = written(tmp_path, definition, "v1", storage="v1")

    done = instar(server, "upgrade", release)

    assert done.returncode == 0, done.stdout
    assert "apply: done: created" in done.stdout
    assert _versions(server, definition) == ["v1"]


def test_a_release_that_replaces_the_storage_version_goes_all_the_way(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = _installed(server, tmp_path)
    release = written(tmp_path, definition, "v1", storage="v1")

    done = instar(server, "upgrade", release, "--allow", "version-removed")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "apply with v1beta1 as now, migrate, then apply the release" in done.stdout
    assert "drop versions: done: v1beta1" in done.stdout
    assert _versions(server, definition) == ["v1"]
    assert stored_versions(server, definition) == ["v1"]
    assert census(server, definition) == {"v1": 5}


def test_owner_references_are_moved_to_a_version_that_stays(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = _installed(server, tmp_path, count=1)
    group = definition["spec"]["group"]
    owner = server.request("GET", objects_path(definition, "v1beta1", "w00000")).json["metadata"]
    reference = {
        "apiVersion": f"{group}/v1beta1",
        "kind": "Widget",
        "name": owner["name"],
        "uid": owner["uid"],
    }
    name = group.replace(".", "-")
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [reference]},
    }
    assert server.request("POST", "/api/v1/namespaces/default/configmaps", body).status == 201
    release = written(tmp_path, definition, "v1", storage="v1")

    done = instar(server, "upgrade", release, "--allow", "version-removed")

    assert done.returncode == 0, done.stdout
    assert "owner references: done: 1 changed" in done.stdout
    found = server.request("GET", f"/api/v1/namespaces/default/configmaps/{name}").json
    assert found["metadata"]["ownerReferences"][0]["apiVersion"] == f"{group}/v1"


def test_a_second_run_has_nothing_to_do(server: LiveServer, tmp_path: Path) -> None:
    definition = _installed(server, tmp_path)
    release = written(tmp_path, definition, "v1", storage="v1")
    instar(server, "upgrade", release, "--allow", "version-removed")
    before = server.request("GET", crd_path(name_of(definition))).json

    again = instar(server, "upgrade", release)

    assert again.returncode == 0, again.stdout
    assert "apply: nothing to do" in again.stdout
    assert "migrate: nothing to do" in again.stdout
    after = server.request("GET", crd_path(name_of(definition))).json
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_breaking_change_is_refused_before_anything_is_written(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = _installed(server, tmp_path)
    release = written(tmp_path, definition, "v1", storage="v1")

    refused = instar(server, "upgrade", release)

    assert refused.returncode == 1
    assert "error: version-removed" in refused.stdout
    assert "Nothing was changed" in refused.stdout
    assert _versions(server, definition) == ["v1beta1"]


def test_one_crd_that_is_refused_holds_back_the_others(server: LiveServer, tmp_path: Path) -> None:
    good, bad = crd(), crd()
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"] = "nonsense"
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([good, bad]))

    refused = instar(server, "upgrade", str(tmp_path / "all.yaml"))

    assert refused.returncode == 1
    assert "refused" in refused.stdout
    assert server.request("GET", crd_path(name_of(good))).status == 404


def test_a_plan_writes_nothing(server: LiveServer, tmp_path: Path) -> None:
    definition = _installed(server, tmp_path)
    release = written(tmp_path, definition, "v1beta1", "v1", storage="v1beta1")

    planned = instar(server, "upgrade", release, "--plan")

    assert planned.returncode == 0, planned.stdout
    assert "plan: would be done: apply" in planned.stdout
    assert _versions(server, definition) == ["v1beta1"]


def test_a_migration_that_changes_content_is_taken_back(server: LiveServer, tmp_path: Path) -> None:
    with Webhook() as hook:
        definition = _installed(server, tmp_path, count=3)
        document = {**definition, "spec": {**definition["spec"], "conversion": hook.conversion()}}
        release = written(tmp_path, document, "v1beta1", "v1", storage="v1")
        calls = 0

        def drifting(obj: Object, wanted: str) -> Object:
            nonlocal calls
            calls += 1
            return {**relabel(obj, wanted), "spec": {**obj["spec"], "size": calls}}

        hook.convert = drifting
        failed = instar(server, "upgrade", release, "--fail-on", "none")
        hook.convert = relabel
        found = server.request("GET", crd_path(name_of(definition))).json
        read = server.request("GET", objects_path(definition, "v1beta1", "w00001"))

    assert failed.returncode == 1
    assert "migrate: failed" in failed.stdout
    assert "roll back: taken back" in failed.stdout
    by_name = {version["name"]: version for version in found["spec"]["versions"]}
    assert (by_name["v1beta1"]["served"], by_name["v1beta1"]["storage"]) == (True, True)
    assert by_name["v1"]["served"] is False
    assert read.status in (200, 500), read.text


def test_a_crd_too_large_for_the_last_applied_annotation_is_applied(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = crd()
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for number in range(400):
        spec["properties"][f"field{number}"] = {"type": "string", "description": "x" * 900}
    release = written(tmp_path, definition, "v1", storage="v1")
    assert Path(release).stat().st_size > 262_144

    done = instar(server, "upgrade", release)

    assert done.returncode == 0, done.stdout
    found = server.request("GET", crd_path(name_of(definition))).json
    assert "annotations" not in found["metadata"]


def test_a_webhook_that_the_release_no_longer_has_is_taken_out(
    server: LiveServer, tmp_path: Path
) -> None:
    with Webhook() as hook:
        definition = crd(conversion=hook.conversion())
        server.create_crd(definition)
        plain = {**definition, "spec": dict(definition["spec"])}
        del plain["spec"]["conversion"]
        release = written(tmp_path, plain, "v1beta1", "v1", storage="v1beta1")

        done = instar(server, "upgrade", release, "--fail-on", "none")

    assert done.returncode == 0, done.stdout
    found = server.request("GET", crd_path(name_of(definition))).json
    assert found["spec"]["conversion"] == {"strategy": "None"}


def test_on_a_kube_apiserver_it_settles_and_carries_ownership_over(
    cluster: Upstream, tmp_path: Path
) -> None:
    definition = _installed(cluster, tmp_path)
    release = written(tmp_path, definition, "v1", storage="v1")

    done = instar(cluster, "upgrade", release, "--allow", "version-removed", "--settle", "0.1")

    assert done.returncode == 0, done.stdout + done.stderr
    found = cluster.request("GET", objects_path(definition, "v1", "w00001")).json
    group = definition["spec"]["group"]
    assert {e["apiVersion"] for e in found["metadata"]["managedFields"]} == {f"{group}/v1"}


def test_the_report_is_one_document(server: LiveServer, tmp_path: Path) -> None:
    definition = crd()
    release = written(tmp_path, definition, "v1", storage="v1")
    report = tmp_path / "report.json"

    instar(server, "upgrade", release, "--report", str(report))

    document = json.loads(report.read_text())
    assert document["ok"]
    assert [step["step"] for step in document["crds"][0]["steps"]][-2:] == ["apply", "migrate"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "name files or folders that contain CRDs"),
        (["/nowhere.yaml"], "No such file"),
        (["--allow", "no-such-rule", "RELEASE"], "no-such-rule"),
    ],
)
def test_wrong_calls_are_one_line(
    server: LiveServer, tmp_path: Path, words: list[str], text: str
) -> None:
    release = written(tmp_path, crd(), "v1", storage="v1")

    done = instar(server, "upgrade", *(release if word == "RELEASE" else word for word in words))

    assert done.returncode == 2
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("hook", "annotation"), [("helm", "helm.sh/hook"), ("argocd", "argocd.argoproj.io/hook")]
)
def test_the_manifests_are_a_job_that_a_hook_runs(
    server: LiveServer, tmp_path: Path, hook: str, annotation: str
) -> None:
    release = written(tmp_path, crd(), "v1", storage="v1")
    words = ("upgrade", "--manifests", "--hook", hook, "--config-map", "crds", release)

    documents = list(yaml.safe_load_all(instar(server, *words).stdout))

    kinds = [document["kind"] for document in documents]
    assert kinds == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"]
    assert all(annotation in document["metadata"]["annotations"] for document in documents)
    pod = documents[-1]["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "crds", "configMap": {"name": "crds"}}]


def test_a_roll_back_puts_the_objects_back_and_names_them(
    server: LiveServer, tmp_path: Path
) -> None:
    """The user accepts a loss, then one object cannot be rewritten: nothing is lost after all."""
    definition = crd(schemas={"v1beta1": schema("legacy"), "v1": schema()})
    old = json.loads(json.dumps(definition))
    old["spec"]["versions"] = [v for v in old["spec"]["versions"] if v["name"] == "v1beta1"]
    server.create_crd(old)
    fill(server, definition, 30)
    for number in range(10):
        path = objects_path(definition, "v1beta1", f"w{number:05d}")
        kind = "application/merge-patch+json"
        patch = {"spec": {"legacy": "kept"}}
        assert server.request("PATCH", path, patch, content_type=kind).status == 200
    release = json.loads(json.dumps(definition))
    (new,) = [v for v in release["spec"]["versions"] if v["name"] == "v1"]
    rule = "self.size != 25 || (oldSelf.hasValue() && false)"
    spec = new["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [{"rule": rule, "optionalOldSelf": True}]
    release["spec"]["versions"] = [{**new, "storage": True}]
    file = tmp_path / "release.yaml"
    file.write_text(yaml.safe_dump(release))

    failed = instar(
        server, "upgrade", str(file), "--fail-on", "none", "--accept-change", "spec.legacy",
        "--allow", "version-removed", "--allow", "stored-objects-break",
    )  # fmt: skip

    assert failed.returncode == 1, failed.stdout
    assert "roll back: taken back" in failed.stdout
    assert "roll back of objects: taken back: undo of 30 objects: 10 put back" in failed.stdout
    assert "default/w00003: put back: spec.legacy at v1beta1" in failed.stdout
    assert with_legacy(server, definition) == 10
