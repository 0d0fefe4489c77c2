"""Tools that believe nothing: what was not read at every version is not proven, not kept and not
claimed; disks that are full and files that are no journals end in one line."""

from __future__ import annotations

import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.kube.api.crd import read_crd
from instar.tools.migrator.census.usage import VersionUsage
from instar.tools.migrator.census.version_census import StoredVersionCensus
from instar.tools.migrator.outcomes import UNPROVEN, Fate
from instar.tools.migrator.progress_file import ProgressFile, default_path
from instar.tools.migrator.undo.journal import UndoJournal, journal_path
from instar.tools.migrator.versions.lifecycle import Situation, blocks_remove
from instar.wire.client.kubeconfig import load_access
from tests.migrator.running import Silent, instar, migrated
from tests.migrator.support import (
    crd,
    edit_crd,
    fill,
    lossy_crd,
    name_of,
    objects_path,
    schema,
    stale_crd,
    store_at,
    stored_versions,
    with_legacy,
)
from tests.migrator.upstream import Upstream
from tests.support.server import LiveServer
from tests.support.webhook import Webhook, relabel

MERGE = "application/merge-patch+json"
FORBIDDEN: Object = {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}


def _journal_of(server: LiveServer, definition: Object) -> Path:
    return journal_path(default_path(name_of(definition), load_access(server.kubeconfig).server))


def _served(server: LiveServer, definition: Object, version: str, served: bool) -> None:
    def change(current: Object) -> None:
        for item in current["spec"]["versions"]:
            item["served"] = served if item["name"] == version else item["served"]

    edit_crd(server, definition, change)


def _changed(server: LiveServer, definition: Object, name: str, **spec: str) -> None:
    path = f"{objects_path(definition, 'v1', name)}?fieldManager=another"
    assert server.request("PATCH", path, {"spec": spec}, content_type=MERGE).status == 200


# --- versions that could not be read ------------------------------------------------------------


def test_an_object_that_some_version_cannot_show_is_not_written() -> None:
    def convert(obj: Object, wanted: str) -> Object:
        if obj["metadata"]["name"] == "w00001" and wanted.endswith("/v1alpha1"):
            raise RuntimeError("not this one")
        return relabel(obj, wanted)

    with Webhook() as hook, _server_without_cache() as server:
        definition = _with_alpha(server, hook)
        hook.convert = convert

        report = migrated(server, definition)

        (held,) = report.quarantine
        assert (held.key, held.reason) == ("default/w00001", UNPROVEN)
        assert "it cannot be read at v1alpha1 now" in held.message
        assert report.counts[Fate.REFUSED] == 1
        assert not report.pruned
        assert server.stored(f"{_prefix(definition)}/w00001")["apiVersion"].endswith("/v1beta1")


def test_a_version_that_is_not_shown_after_the_write_leaves_the_object_unproven() -> None:
    with Webhook() as hook, _server_without_cache() as server:
        definition = _with_alpha(server, hook)
        written: list[int] = []

        def convert(obj: Object, wanted: str) -> Object:
            if written and wanted.endswith("/v1alpha1"):
                raise RuntimeError("down since the writes")
            return relabel(obj, wanted)

        class Watching(Silent):
            def advance(self, count: int) -> None:
                written.extend([count] * bool(count))

        hook.convert = convert

        report = migrated(server, definition, progress=Watching())

        assert not report.pruned
        assert "nothing accounts for" in report.not_pruned
        assert "v1beta1" in stored_versions(server, definition)


def test_fields_that_only_another_version_has_are_put_back_at_that_version() -> None:
    """v1 and v1alpha1 keep the field, the way from v1beta1 to v1 does not, and v1beta1 is not
    served: only the look after the write can see that v1alpha1 shows less."""

    def convert(obj: Object, wanted: str) -> Object:
        out = relabel(obj, wanted)
        if obj["apiVersion"].endswith("/v1beta1") and wanted.endswith("/v1"):
            return {**out, "spec": {k: v for k, v in obj["spec"].items() if k != "host"}}
        return out

    with Webhook() as hook, _server_without_cache() as server:
        definition = _with_alpha(server, hook)
        _served(server, definition, "v1beta1", False)
        hook.convert = convert
        path = objects_path(definition, "v1alpha1")
        before = [item["spec"] for item in server.request("GET", path).json["items"]]

        undo = UndoJournal()
        report = migrated(server, definition, undo=undo, keep_going=True)
        undo.close()

        assert report.counts[Fate.DIFFERS] == 3
        assert [item["spec"] for item in server.request("GET", path).json["items"]] == before


def _server_without_cache() -> Any:
    from tests.support.server import live_server

    return live_server(conversion_cache=False)


def _with_alpha(server: LiveServer, hook: Webhook) -> Object:
    """Three objects at v1beta1, three served versions, storage version v1."""
    definition = crd(conversion=hook.conversion())
    old = definition["spec"]["versions"][0]
    definition["spec"]["versions"].append({**old, "name": "v1alpha1", "storage": False})
    server.create_crd(definition)
    fill(server, definition, 3)
    store_at(server, definition, "v1")
    return definition


def _prefix(definition: Object) -> str:
    spec = definition["spec"]
    return f"{spec['group']}/{spec['names']['plural']}/default"


# --- undo ---------------------------------------------------------------------------------------


def test_a_second_undo_does_not_call_newer_changes_unchanged(server: LiveServer) -> None:
    definition = stale_crd(server, 3)
    assert instar(server, "migrate", name_of(definition)).returncode == 0
    journal = str(_journal_of(server, definition))
    assert instar(server, "migrate", "--undo", journal).returncode == 0
    _changed(server, definition, "w00001", host="mine")

    again = instar(server, "migrate", "--undo", journal)

    assert again.returncode == 1
    assert "default/w00001: changed since: it was put back before" in again.stdout
    path = objects_path(definition, "v1", "w00001")
    assert server.request("GET", path).json["spec"]["host"] == "mine"


def test_an_undo_claims_nothing_about_versions_that_are_not_served(server: LiveServer) -> None:
    definition = lossy_crd(server, 3, range(3))
    accept = ("--accept-change", "spec.legacy")
    assert instar(server, "migrate", name_of(definition), *accept).returncode == 0
    _served(server, definition, "v1beta1", False)

    undone = instar(server, "migrate", "--undo", str(_journal_of(server, definition)))

    assert undone.returncode == 1
    assert "what v1beta1 showed cannot be compared, because it is not served now" in undone.stdout


def test_an_undo_of_a_killed_run_keeps_what_another_client_wrote_at_one_version(
    server: LiveServer, tmp_path: Path
) -> None:
    later = {"colour": {"type": "string"}}
    definition = crd(schemas={"v1beta1": schema("legacy"), "v1": schema(**later)})
    server.create_crd(definition)
    fill(server, definition, 2)
    store_at(server, definition, "v1")

    class Killed(ProgressFile):
        def finish_page(self, outcomes: Any, token: str) -> None:
            raise KeyboardInterrupt

    class Forgetful(UndoJournal):
        def note_written(self, revisions: Any) -> None:
            """Killed before the results were noted."""

    progress, undo = Killed(tmp_path / "x.progress"), Forgetful(tmp_path / "x.undo")
    with pytest.raises(KeyboardInterrupt):
        migrated(server, definition, journal=progress, undo=undo)
    progress.close()
    undo.close()
    _changed(server, definition, "w00001", colour="blue")

    undone = instar(server, "migrate", "--undo", str(tmp_path / "x.undo"))

    assert "default/w00001: changed since" in undone.stdout
    path = objects_path(definition, "v1", "w00001")
    assert server.request("GET", path).json["spec"]["colour"] == "blue"


def test_an_undo_reports_deleted_objects_and_creates_none(server: LiveServer) -> None:
    definition = stale_crd(server, 3)
    assert instar(server, "migrate", name_of(definition)).returncode == 0
    server.request("DELETE", objects_path(definition, "v1", "w00001"))

    undone = instar(server, "migrate", "--undo", str(_journal_of(server, definition)))

    assert undone.returncode == 0
    assert "default/w00001: gone" in undone.stdout
    assert server.request("GET", objects_path(definition, "v1", "w00001")).status == 404


@pytest.mark.parametrize("damage", ["text", "database", "blob"])
def test_a_damaged_journal_is_reported_in_one_line_and_kept(
    server: LiveServer, tmp_path: Path, damage: str
) -> None:
    definition = stale_crd(server, 2)
    assert instar(server, "migrate", name_of(definition)).returncode == 0
    file = _journal_of(server, definition)
    if damage == "blob":
        with sqlite3.connect(file) as database:
            database.execute("UPDATE objects SET readings = x'00'")
        database.close()
    else:
        file = tmp_path / "other"
        if damage == "text":
            file.write_text("no journal")
        else:
            with sqlite3.connect(file) as database:
                database.execute("CREATE TABLE mine (x TEXT)")
            database.close()
        file.chmod(0o644)
    before = (file.read_bytes(), stat.S_IMODE(file.stat().st_mode))

    undone = instar(server, "migrate", "--undo", str(file))

    assert undone.returncode == 1
    assert undone.stderr.count("\n") == 1
    assert "Traceback" not in undone.stderr
    if damage != "blob":
        assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == before


# --- files --------------------------------------------------------------------------------------


def test_a_full_disk_stops_a_run_before_it_writes_what_it_cannot_keep(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = lossy_crd(server, 30, range(30))

    class Full(UndoJournal):
        def record(self, page: Any) -> None:
            self._db.execute("PRAGMA max_page_count = 1")
            super().record(page)

    undo = Full(tmp_path / "x.undo")
    report = migrated(server, definition, undo=undo, accept_changes=("spec.legacy",))
    undo.close()

    assert "cannot be read or written: database or disk is full" in report.stopped
    assert with_legacy(server, definition) == 30


def test_a_disk_that_is_full_after_a_page_ends_the_run_in_one_line(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = stale_crd(server, 3)
    original = UndoJournal.note_written

    def full(self: UndoJournal, given: Any) -> None:
        self._db.execute("PRAGMA query_only = 1")
        original(self, given)

    monkeypatch.setattr(UndoJournal, "note_written", full)

    run = instar(server, "migrate", name_of(definition))

    assert run.returncode == 1
    assert "the undo journal" in run.stdout
    assert "cannot be read or written" in run.stdout


def test_a_progress_file_on_a_full_disk_ends_the_run_in_one_line(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = stale_crd(server, 3)
    take = ProgressFile.take

    def full(self: ProgressFile, found: Any) -> Any:
        self._database.execute("PRAGMA query_only = 1")
        return take(self, found)

    monkeypatch.setattr(ProgressFile, "take", full)

    run = instar(server, "migrate", name_of(definition))

    assert run.returncode == 1
    assert "the progress file" in run.stdout + run.stderr
    assert "Traceback" not in run.stderr
    assert "v1beta1" in stored_versions(server, definition)


def test_a_progress_file_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    journal = ProgressFile(tmp_path / "x.progress")
    journal.close()

    assert stat.S_IMODE((tmp_path / "x.progress").stat().st_mode) == 0o600


# --- lists that show nothing --------------------------------------------------------------------


def test_a_version_is_not_removed_while_its_objects_may_not_be_listed(cluster: Upstream) -> None:
    definition = stale_crd(cluster, 3)
    _served(cluster, definition, "v1beta1", False)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name_of(definition)}/status"
    lie = {"status": {"storedVersions": ["v1"]}}
    assert cluster.request("PATCH", path, lie, content_type=MERGE).status == 200
    cluster.meddle = lambda method, path, body: (403, FORBIDDEN) if "/widgets" in path else None

    refused = instar(cluster, "versions", name_of(definition), "remove", "v1beta1")

    assert refused.returncode == 1
    cluster.meddle = lambda method, path, body: None
    assert cluster.request("GET", objects_path(definition, "v1")).status == 200


def test_a_version_whose_objects_were_not_counted_is_not_removable() -> None:
    definition = crd(served=("v1",), storage="v1")
    census = StoredVersionCensus({}, candidates=("v1",), how="lists fail", counted=False)
    situation = Situation(read_crd(definition), census, VersionUsage(), datetime.now(UTC))

    (why,) = blocks_remove(situation, "v1beta1")

    assert why == "how many objects are stored in it is not known: lists fail"


@pytest.mark.parametrize("code", [403, 404])
def test_a_removal_is_taken_back_when_the_lists_after_it_show_nothing(
    cluster: Upstream, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(
        "instar.tools.migrator.rewrite_checks.collection_check._NOT_FOUND_SECONDS", 0.0
    )
    definition = stale_crd(cluster, 3)
    assert instar(cluster, "migrate", name_of(definition), "--settle", "0").returncode == 0
    words = ("versions", name_of(definition))
    assert instar(cluster, *words, "unserve", "v1beta1", "--clients-migrated").returncode == 0
    removed: list[str] = []

    def meddle(method: str, path: str, body: Any) -> tuple[int, Object] | None:
        if method == "PUT" and "customresourcedefinitions" in path:
            removed.append(path)
        hides = removed and len(removed) == 1 and path.endswith("/widgets")
        return (code, {**FORBIDDEN, "code": code, "reason": "NotFound"}) if hides else None

    cluster.meddle = meddle

    done = instar(cluster, *words, "remove", "v1beta1", "--settle", "0")

    assert done.returncode == 1
    assert "v1beta1 was put back at once, because the objects cannot be listed" in done.stderr
