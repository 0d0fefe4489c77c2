from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from instar.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("name", ["cron", "hostport"])
def test_the_tests_of_an_example_pass_in_its_folder(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=EXAMPLES / name,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "converter", "version"),
    [("cron", "crontab_conversion:crontab", "v2"), ("hostport", "conversion.yaml", "v1")],
)
def test_the_commands_work_on_an_example(
    name: str,
    converter: str,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(EXAMPLES / name)
    monkeypatch.syspath_prepend(EXAMPLES / name)

    checked = main(["check", "--crd", "crd.yaml", "--converter", converter, "--examples", "30"])
    capsys.readouterr()
    converted = main(["convert", "--converter", converter, "--to", version, "sample.yaml"])

    assert (checked, converted) == (0, 0)
    assert yaml.safe_load(capsys.readouterr().out)["apiVersion"].endswith(f"/{version}")


@pytest.mark.parametrize("name", ["cron", "hostport"])
def test_the_manifests_of_an_example_fit_its_crd(name: str) -> None:
    crd = yaml.safe_load((EXAMPLES / name / "crd.yaml").read_text())
    documents = list(yaml.safe_load_all((EXAMPLES / name / "webhook.yaml").read_text()))

    wanted = crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
    [service] = [document for document in documents if document["kind"] == "Service"]
    assert service["metadata"]["name"] == wanted["name"]
    assert service["metadata"]["namespace"] == wanted["namespace"]
