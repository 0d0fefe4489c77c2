"""``instar versions``: the screen, and edits in the cluster and in files."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from instar.base.json_values import Object
from instar.wire.client.paths import crd_path
from tests.migrator.running import instar, migrated
from tests.migrator.support import crd, fill, name_of, objects_path, store_at
from tests.support.server import LiveServer


def _stale(server: LiveServer, count: int) -> Object:
    definition = crd()
    server.create_crd(definition)
    fill(server, definition, count)
    store_at(server, definition, "v1")
    return definition


def _versions(server: LiveServer, definition: Object) -> dict[str, Object]:
    current = server.request("GET", crd_path(name_of(definition))).json
    return {item["name"]: item for item in current["spec"]["versions"]}


def test_the_output_shows_users_of_each_version_and_the_next_step(server: LiveServer) -> None:
    definition = _stale(server, 3)
    server.request("GET", objects_path(definition, "v1beta1"), headers={"User-Agent": "old/1"})

    shown = instar(server, "versions", name_of(definition)).stdout

    assert "VERSION  SERVED  STORAGE  DEPRECATED  STORED  LAST USED" in shown
    assert "list by old/1 (kubernetes-admin)" in shown
    assert f"run instar migrate {name_of(definition)}" in shown
    assert "v1beta1 can be deprecated" in shown
    assert "v1beta1 cannot be unserved: it is in use: old/1 (kubernetes-admin) list" in shown
    assert "v1beta1 cannot be removed: v1beta1 is still served" in shown
    assert "3 objects are stored in it" in shown


def test_the_screen_as_json(server: LiveServer) -> None:
    definition = _stale(server, 3)

    told = json.loads(instar(server, "versions", name_of(definition), "--output", "json").stdout)

    old = next(item for item in told["versions"] if item["name"] == "v1beta1")
    assert old["stored"] == {"atLeast": 3, "atMost": 3}
    assert [step["step"] for step in old["next"]] == ["deprecate", "unserve", "remove"]


def test_removing_the_storage_version_does_not_suggest_a_migration(server: LiveServer) -> None:
    definition = _stale(server, 3)
    name = name_of(definition)

    refused = instar(server, "versions", name, "remove", "v1")

    assert refused.returncode == 1
    assert "v1 is the storage version; make another one that first" in refused.stderr
    assert "instar migrate" not in refused.stderr


def test_a_versions_whole_life_in_the_cluster(server: LiveServer) -> None:
    definition = _stale(server, 3)
    name = name_of(definition)

    refused = instar(server, "versions", name, "remove", "v1beta1")
    assert refused.returncode == 1
    assert refused.stderr.startswith("instar versions: v1beta1 cannot be removed: ")
    assert _versions(server, definition)["v1beta1"]["served"]

    migrated(server, definition)
    for words in (
        ("deprecate", "v1beta1", "--warning", "use v1"),
        ("unserve", "v1beta1", "--clients-migrated"),
        ("serve", "v1beta1"),
        ("unserve", "v1beta1", "--clients-migrated"),
        ("remove", "v1beta1"),
        ("add", "v2"),
    ):
        finished = instar(server, "versions", name, *words)
        assert finished.returncode == 0, finished.stderr

    versions = _versions(server, definition)
    assert list(versions) == ["v1", "v2"]
    assert versions["v2"]["schema"] == versions["v1"]["schema"]


def test_a_dry_run_changes_nothing(server: LiveServer) -> None:
    definition = _stale(server, 0)

    finished = instar(server, "versions", name_of(definition), "add", "v2", "--dry-run")

    assert finished.returncode == 0, finished.stderr
    assert "nothing was changed" in finished.stdout
    assert "v2" not in _versions(server, definition)


def test_a_file_is_edited_in_place_and_keeps_its_comments(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = _stale(server, 2)
    file = tmp_path / "crd.yaml"
    text = "# ours, by hand\n" + yaml.safe_dump(definition, sort_keys=False)
    file.write_text(text + "---\nkind: ConfigMap  # a neighbour\n")

    finished = instar(server, "versions", name_of(definition), "storage", "v1", "--file", str(file))

    assert finished.returncode == 0, finished.stderr
    edited = file.read_text()
    assert edited.startswith("# ours, by hand\n")
    assert "kind: ConfigMap  # a neighbour" in edited
    document = next(yaml.safe_load_all(edited))
    assert [item["storage"] for item in document["spec"]["versions"]] == [False, True]


def test_a_file_may_not_remove_what_the_cluster_still_serves(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = _stale(server, 2)
    for item in definition["spec"]["versions"]:
        item["served"] = item["storage"] = item["name"] == "v1"
    file = tmp_path / "crd.yaml"
    file.write_text(yaml.safe_dump(definition))
    words = ("versions", name_of(definition), "remove", "v1beta1", "--file", str(file))

    finished = instar(server, *words)
    offline = instar(server, *words, "--offline")

    assert finished.returncode == 1
    assert "still served" in finished.stderr
    assert offline.returncode == 0, offline.stderr
    assert "offline: clients and stored objects of this version were not checked" in offline.stdout


def test_another_schema_without_a_webhook_is_refused(server: LiveServer, tmp_path: Path) -> None:
    definition = _stale(server, 0)
    schema = tmp_path / "schema.yaml"
    schema.write_text("openAPIV3Schema: {type: object}\n")

    finished = instar(server, "versions", name_of(definition), "add", "v2", "--schema", str(schema))

    assert finished.returncode == 1
    assert "set up a conversion webhook first" in finished.stderr


def test_audit_logs_speak_for_clients_elsewhere(server: LiveServer, tmp_path: Path) -> None:
    definition = _stale(server, 0)
    log = tmp_path / "audit.log"
    event = {
        "stage": "ResponseComplete",
        "verb": "get",
        "requestReceivedTimestamp": "2020-01-01T00:00:00Z",
        "user": {"username": "jane"},
        "userAgent": "ancient/1",
        "objectRef": {
            "apiGroup": definition["spec"]["group"],
            "apiVersion": "v1beta1",
            "resource": "widgets",
        },
    }
    log.write_text(json.dumps(event) + "\n")

    shown = instar(server, "versions", name_of(definition), "--audit-log", str(log))

    assert "v1beta1 can be unserved: no request for" in shown.stdout
    assert "get by ancient/1 (jane)" in shown.stdout
