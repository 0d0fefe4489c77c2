"""What tests of the documentation share: our wheel, and a copy of the clone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import ROOT

_BUILD = "import sys, flit_core.buildapi as b; b.build_wheel(sys.argv[1])"


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of this repository, built once for all pages."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-c", _BUILD, str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a clone holds of the package and its examples."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("instar", "examples", "requirements"):
        hidden = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=hidden)
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    return folder
