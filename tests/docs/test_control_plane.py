"""The scripts of docs/how-to/control-plane.md run as written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.pages import DOCS, run_script, script

PAGE = DOCS / "how-to" / "control-plane.md"


def test_simulated_nodes_run_a_pod_as_written(tmp_path: Path) -> None:
    done = run_script(script(PAGE, "nodes"), tmp_path, "the tour of simulated nodes")

    assert "pod/hello condition met\n" in done.stdout


def test_the_real_controllers_run_as_written(tmp_path: Path) -> None:
    for program in ("kube-controller-manager", "kube-scheduler"):
        if shutil.which(program) is None:
            pytest.skip(f"NO {program} on this machine: the real controllers were not run")

    done = run_script(script(PAGE, "control plane"), tmp_path, "the control plane")

    assert 'deployment "web" successfully rolled out\n' in done.stdout
    for told in (
        "job.batch/once condition met\n",
        "persistentvolumeclaim/data condition met\n",
        "partitioned roll out complete: 2 new pods have been updated",
        "deployment.apps/web condition met\n",
        "poddisruptionbudget.policy/web condition met\n",
    ):
        assert told in done.stdout
    assert "would violate the pod's disruption budget" in done.stderr
    assert done.stdout.count(" drained\n") == 1
