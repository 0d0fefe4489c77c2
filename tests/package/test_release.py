"""What a release consists of: one version everywhere, and a bill of materials of all its parts."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import instar

ROOT = Path(__file__).resolve().parents[2]
NAMING = (
    *("deploy/chart/Chart.yaml", "ci/gitlab.yml", "docs/tutorials/review-in-ci.md"),
    *("docs/how-to/ci.md", "docs/how-to/install.md", "docs/how-to/containers.md"),
    "docs/how-to/upgrade-instar.md",
)
NAMED = re.compile(
    r"(?:instar@v|instar/v|rev: v|instar-|\[(?:review|server)\]==|/instar:|^(?:appV|v)ersion: )"
    r"(\d+\.\d+\.\d+)",
    re.MULTILINE,
)


@pytest.mark.parametrize("name", NAMING)
def test_a_page_or_template_names_the_version_of_the_package(name: str) -> None:
    named = NAMED.findall((ROOT / name).read_text())

    assert named
    assert set(named) == {instar.__version__}


def test_ci_templates_name_no_moving_branch() -> None:
    for name in (*NAMING, "action.yml"):
        text = (ROOT / name).read_text()

        assert "instar@main" not in text
        assert "rev: main" not in text


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    (folder / "instar-1.0.0-py3-none-any.whl").write_bytes(b"wheel")
    (folder / "instar-1.0.0.tar.gz").write_bytes(b"sdist")
    return folder


def _sbom(dist: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "sbom"), str(dist)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_bill_of_materials_lists_every_pin_with_its_license(dist: Path) -> None:
    bill = json.loads(_sbom(dist))
    pins = (ROOT / "requirements" / "base.txt").read_text().split()
    listed = {f"{each['name']}=={each['version']}": each for each in bill["components"]}

    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert set(pins) <= set(listed)
    assert [name for name in pins if "licenses" not in listed[name]] == []
    assert {"preact", "@preact/signals"} <= {each["name"] for each in bill["components"]}
    refs = [bill["metadata"]["component"]["bom-ref"], *(e["bom-ref"] for e in bill["components"])]
    assert [each["ref"] for each in bill["dependencies"]] == refs
    assert len(set(refs)) == len(refs)


def test_the_bill_of_materials_has_the_hashes_of_the_files(dist: Path) -> None:
    own = json.loads(_sbom(dist))["metadata"]["component"]

    assert own["version"] == instar.__version__
    assert {each["url"]: each["hashes"][0]["content"] for each in own["externalReferences"]} == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in dist.iterdir()
    }


def test_the_same_release_has_the_same_bill_of_materials(dist: Path) -> None:
    assert _sbom(dist) == _sbom(dist)
