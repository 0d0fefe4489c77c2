"""A ``storedVersions`` that a client patched is not believed by any command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from instar.base.json_values import Object
from instar.wire.client.paths import crd_path
from tests.migrator.running import instar
from tests.migrator.support import (
    census,
    edit_crd,
    fill,
    lossy_crd,
    name_of,
    objects_path,
    stale_crd,
    stored_versions,
    with_legacy,
)
from tests.migrator.upstream import Upstream

MERGE = "application/merge-patch+json"


def _lie(cluster: Upstream, definition: Object) -> None:
    """What tutorials teach: patch the status and believe it."""
    path = crd_path(name_of(definition), subresource="status")
    body = {"status": {"storedVersions": ["v1"]}}
    assert cluster.request("PATCH", path, body, content_type=MERGE).status == 200


def _unserve(cluster: Upstream, definition: Object) -> None:
    def change(current: Object) -> None:
        for item in current["spec"]["versions"]:
            item["served"] = item["name"] == "v1"

    edit_crd(cluster, definition, change)


@pytest.fixture
def lying(cluster: Upstream) -> Object:
    definition = stale_crd(cluster, 20)
    _lie(cluster, definition)
    return definition


def test_a_census_calls_it_an_assumption(cluster: Upstream, lying: Object) -> None:
    told = instar(cluster, "census", name_of(lying))
    document = json.loads(instar(cluster, "census", name_of(lying), "-o", "json").stdout)

    assert "assumed from storedVersions" in told.stdout
    assert document[name_of(lying)]["assumed"]
    assert document[name_of(lying)]["objects"] == {"v1": 0}


def test_a_migration_makes_a_pass_all_the_same(cluster: Upstream, lying: Object) -> None:
    run = instar(cluster, "migrate", name_of(lying), "--settle", "0")

    assert run.returncode == 0, run.stdout
    assert "20 stale and rewritten" in run.stdout
    assert census(cluster, lying) == {"v1": 20}


def test_only_the_users_word_makes_a_migration_believe_it(cluster: Upstream, lying: Object) -> None:
    run = instar(cluster, "migrate", name_of(lying), "--trust-stored-versions")

    assert run.returncode == 0
    assert "is believed (--trust-stored-versions)" in run.stdout
    assert census(cluster, lying)["v1beta1"] == 20


def test_a_version_is_not_removed_without_a_pass(cluster: Upstream, lying: Object) -> None:
    _unserve(cluster, lying)

    refused = instar(cluster, "versions", name_of(lying), "remove", "v1beta1")

    assert refused.returncode == 1
    assert "up to 20 objects may be stored in it" in refused.stderr
    assert f"run instar migrate {name_of(lying)}" in refused.stderr


def test_the_record_of_a_pass_lets_a_version_be_removed(cluster: Upstream, lying: Object) -> None:
    name = name_of(lying)
    assert instar(cluster, "migrate", name, "--settle", "0").returncode == 0
    vouched = ("--clients-migrated",)
    unserved = instar(cluster, "versions", name, "unserve", "v1beta1", *vouched)
    assert unserved.returncode == 0, unserved.stderr

    removed = instar(cluster, "versions", name, "remove", "v1beta1", "--settle", "0")

    assert removed.returncode == 0, removed.stderr
    items = cluster.request("GET", objects_path(lying, "v1")).json["items"]
    assert len(items) == 20


def test_an_edit_by_another_client_ends_the_record_of_a_pass(
    cluster: Upstream, lying: Object
) -> None:
    name = name_of(lying)
    assert instar(cluster, "migrate", name, "--settle", "0").returncode == 0
    _unserve(cluster, lying)

    refused = instar(cluster, "versions", name, "remove", "v1beta1", "--settle", "0")

    assert refused.returncode == 1
    assert "may be stored in it" in refused.stderr


def test_a_removal_after_which_lists_fail_is_taken_back_at_once(
    cluster: Upstream, lying: Object
) -> None:
    """The record is proof, and a later lie of the store is still noticed."""
    name = name_of(lying)
    assert instar(cluster, "migrate", name, "--settle", "0").returncode == 0
    assert (
        instar(cluster, "versions", name, "unserve", "v1beta1", "--clients-migrated").returncode
        == 0
    )

    _fail_lists_without_v1beta1(cluster, name)
    removed = instar(cluster, "versions", name, "remove", "v1beta1", "--settle", "0")

    assert removed.returncode == 1
    assert "v1beta1 was put back at once" in removed.stderr
    current = cluster.request("GET", crd_path(name)).json
    assert [item["name"] for item in current["spec"]["versions"]] == ["v1", "v1beta1"]


def _fail_lists_without_v1beta1(cluster: Upstream, name: str) -> None:
    """As an API server does that has an object of a version that is not in the CRD."""

    def failing(method: str, path: str, body: object) -> tuple[int, Object] | None:
        current = cluster.request("GET", crd_path(name)).json
        gone = len(current["spec"]["versions"]) == 1
        if method == "GET" and path.endswith("/widgets") and gone:
            return 500, {"kind": "Status", "code": 500, "message": "cannot convert", "reason": ""}
        return None

    cluster.meddle = failing


def _release(folder: Path, definition: Object) -> str:
    document = json.loads(json.dumps(definition))
    document["spec"]["versions"] = [
        {**item, "storage": True} for item in document["spec"]["versions"] if item["name"] == "v1"
    ]
    path = folder / "release.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


ALLOW = ("--allow", "version-removed", "--settle", "0")


def test_an_upgrade_rewrites_before_it_drops_a_version(
    cluster: Upstream, lying: Object, tmp_path: Path
) -> None:
    done = instar(cluster, "upgrade", _release(tmp_path, lying), *ALLOW)

    assert done.returncode == 0, done.stdout
    assert "drop versions: done: v1beta1" in done.stdout
    assert census(cluster, lying) == {"v1": 20}


def test_an_upgrade_after_which_lists_fail_puts_the_version_back(
    cluster: Upstream, lying: Object, tmp_path: Path
) -> None:
    _fail_lists_without_v1beta1(cluster, name_of(lying))

    done = instar(cluster, "upgrade", _release(tmp_path, lying), *ALLOW)

    assert done.returncode == 1, done.stdout
    assert "v1beta1 was put back at once" in done.stdout
    current = cluster.request("GET", crd_path(name_of(lying))).json
    assert {item["name"] for item in current["spec"]["versions"]} == {"v1", "v1beta1"}


def test_an_upgrade_that_would_lose_a_field_of_late_objects_changes_nothing(
    cluster: Upstream, tmp_path: Path
) -> None:
    definition = lossy_crd(cluster, 60, range(50, 60))

    done = instar(
        cluster, "upgrade", _release(tmp_path, definition), *ALLOW, "--sample", "5",
        "--fail-on", "none",
    )  # fmt: skip

    assert done.returncode == 1
    assert "spec.legacy at v1beta1 would be lost: 10 objects" in done.stdout
    assert "Nothing was changed" in done.stdout
    assert with_legacy(cluster, definition) == 10


def test_stored_versions_are_trimmed_only_by_a_pass(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 4)
    fill(cluster, definition, 1, "v1", start=4)

    assert stored_versions(cluster, definition) == ["v1beta1", "v1"]
    assert instar(cluster, "migrate", name_of(definition), "--settle", "0").returncode == 0
    assert stored_versions(cluster, definition) == ["v1"]
