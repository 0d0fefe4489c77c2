"""The tours of docs/how-to/admission.md and snapshots.md run as written, with a real kubectl."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.storage.etcd_server import free_ports
from tests.support.pages import DOCS, run_script, script
from tests.support.server import LiveServer

ADMISSION = DOCS / "how-to" / "admission.md"
SNAPSHOT = DOCS / "how-to" / "snapshots.md"


def test_the_tour_of_policies_runs_as_written(fresh_server: LiveServer, tmp_path: Path) -> None:
    text = script(ADMISSION, "policies")

    done = run_script(text, tmp_path, "the tour of policies", fresh_server)

    assert "busybox\n" in done.stdout
    assert done.stderr.rstrip().endswith(
        "ValidatingAdmissionPolicy 'replicas.policies.example.com' with binding 'replicas' denied "
        "request: at most 5 replicas"
    )


def test_the_tour_of_webhooks_runs_as_written(fresh_server: LiveServer, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    text = script(ADMISSION, "webhooks").replace("9443", str(port))

    done = run_script(text, tmp_path, "the tour of webhooks", fresh_server)

    assert "\n3\n" in done.stdout
    assert "Warning: that is a large box" in done.stderr
    assert "size-is-sane.boxes.hooks.example.com" in done.stderr
    assert "denied the request: spec.size is at most 100" in done.stderr


def test_the_tour_of_snapshots_runs_as_written(fresh_server: LiveServer, tmp_path: Path) -> None:
    if shutil.which("jq") is None:
        pytest.skip("NO JQ on this machine: the tour of snapshots was not run")

    done = run_script(script(SNAPSHOT, "tour"), tmp_path, "the tour of snapshots", fresh_server)

    assert "cluster.tar.gz: 1 CRD with 1 object" in done.stdout
    assert "\nobjects/databases.snap.example.com.ndjson\n" in done.stdout
    assert '{"owner":"alice","password":"' in done.stdout
    assert "hunter2" not in done.stdout
    assert "\norders " in done.stdout
    assert done.stdout.endswith("it is only a copy\n")
    assert "this server is read-only" in done.stderr
