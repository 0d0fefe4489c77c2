"""Killed, interrupted, decided about: what the next run makes of the progress file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from instar.base.json_values import Object
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.outcomes import Fate, ObjectResult
from instar.tools.migrator.progress_file import ProgressFile
from tests.migrator.running import instar, migrated
from tests.migrator.support import (
    census,
    forbid_size,
    name_of,
    objects_path,
    stale_crd,
    stored_versions,
)
from tests.support.server import LiveServer
from tests.support.webhook import Webhook, relabel


class Killed(ProgressFile):
    """Dies after the writes of its second page, before anything is noted about them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.pages = 0

    def finish_page(self, outcomes: Iterable[ObjectResult], token: str) -> None:
        self.pages += 1
        if self.pages == 2:
            raise RuntimeError("killed")
        super().finish_page(outcomes, token)


def test_own_writes_before_a_kill_are_verified_and_not_blamed_on_other_clients(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = stale_crd(server, 60)
    killed = Killed(tmp_path / "journal")
    with pytest.raises(RuntimeError, match="killed"):
        migrated(server, definition, page=20, journal=killed)
    killed.close()
    assert census(server, definition)["v1"] == 40
    journal = ProgressFile(tmp_path / "journal")

    report = migrated(server, definition, page=20, journal=journal)

    journal.close()
    assert report.ok, report.lines()
    assert report.counts == {Fate.REWRITTEN: 60}
    assert report.verification is not None
    assert (report.verification.same, report.verification.changed_since) == (60, 0)


def test_ownership_lost_in_an_unrecorded_write_is_restored(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = stale_crd(server, 40)
    killed = Killed(tmp_path / "journal")
    with pytest.raises(RuntimeError, match="killed"):
        migrated(server, definition, page=20, journal=killed)
    killed.close()
    path = objects_path(definition, "v1", "w00030")
    reset: Object = {"metadata": {"managedFields": [{}]}}
    kind = "application/merge-patch+json"
    assert server.request("PATCH", path, reset, content_type=kind).status == 200
    journal = ProgressFile(tmp_path / "journal")

    report = migrated(server, definition, page=20, journal=journal)

    journal.close()
    assert report.ok, report.lines()
    assert server.request("GET", path).json["metadata"]["managedFields"]


def _drifting(server: LiveServer, hook: Webhook) -> Object:
    """A CRD one of whose objects changes when it is rewritten; the webhook is mended afterwards."""
    definition = stale_crd(server, 3, conversion=hook.conversion())
    calls = 0

    def drifting(obj: Object, wanted: str) -> Object:
        nonlocal calls
        calls += 1
        size = calls if obj["metadata"]["name"] == "w00001" else obj["spec"]["size"]
        return {**relabel(obj, wanted), "spec": {**obj["spec"], "size": size}}

    hook.convert = drifting
    return definition


def test_changed_content_says_what_changed_and_can_be_accepted_by_name(
    server: LiveServer, tmp_path: Path
) -> None:
    options = ("--progress", str(tmp_path / "progress"))
    with Webhook() as hook:
        definition = _drifting(server, hook)
        name = name_of(definition)
        first = instar(server, "migrate", name, "--keep-going", *options)
        hook.convert = relabel
        again = instar(server, "migrate", name, "--keep-going", *options)
        accepted = instar(server, "migrate", name, "--accept", "default/w00001", *options)

    assert first.returncode == 1
    assert "spec.size: " in first.stdout
    assert f"instar migrate {name} --accept default/w00001" in first.stdout
    assert again.returncode == 1, "running again does not make it right"
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    assert stored_versions(server, definition) == ["v1"]


def test_only_changed_content_can_be_accepted(server: LiveServer, tmp_path: Path) -> None:
    options = ("--progress", str(tmp_path / "progress"))
    definition = stale_crd(server, 3)
    forbid_size(server, definition, 1)
    name = name_of(definition)
    instar(server, "migrate", name, *options)

    failed = instar(server, "migrate", name, "--accept", "default/w00001", *options)
    unknown = instar(server, "migrate", name, "--accept", "default/nobody", *options)

    assert "default/w00001 is failed, so there is nothing new to accept" in failed.stderr
    assert "default/nobody is not known to accept in" in unknown.stderr
    assert (failed.returncode, unknown.returncode) == (1, 1)


def test_a_quarantined_object_can_be_forgotten_by_name(server: LiveServer, tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    definition = stale_crd(server, 3)
    forbid_size(server, definition, 1)
    instar(server, "migrate", name_of(definition), "--progress", str(progress))
    journal = ProgressFile(progress)

    known, forgotten = journal.forget("default/w00001"), journal.line("default/w00001")

    assert known
    assert forgotten is None
    assert not journal.forget("default/w00001")
    journal.close()


def test_the_path_of_the_progress_file_is_printed_when_it_is_kept(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = stale_crd(server, 3)
    forbid_size(server, definition, 1)
    progress = str(tmp_path / "progress")

    done = instar(server, "migrate", name_of(definition), "--progress", progress)

    assert f"what is known so far: {progress}" in done.stdout


def test_objects_under_constant_writes_are_rewritten_or_accounted_for(
    server: LiveServer,
) -> None:
    definition = stale_crd(server, 5)
    path = objects_path(definition, "v1", "w00002")
    number = 0

    class Overtaken(ProgressFile):
        """Somebody is faster, between our list and our write."""

        def take(self, found: Iterable[ListedObject]) -> list[ListedObject]:
            nonlocal number
            number += 1
            change = {"metadata": {"annotations": {"n": str(number)}}}
            kind = "application/merge-patch+json"
            assert server.request("PATCH", path, change, content_type=kind).status == 200
            return super().take(found)

    report = migrated(server, definition, journal=Overtaken())

    assert report.ok, report.lines()
    assert census(server, definition) == {"v1": 5}
