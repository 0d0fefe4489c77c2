"""The committed pages are what the sources say, small, and hold no address of elsewhere."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "instar" / "tools" / "console" / "assets"
SOURCES = ROOT / "console"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_committed_pages_are_built_from_the_sources(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (SOURCES / "node_modules" / "esbuild").exists():
        pytest.skip("no node with console/node_modules here (scripts/console makes it)")

    subprocess.run([node, "build.mjs", str(tmp_path)], cwd=SOURCES, check=True, timeout=120)

    assert contents(tmp_path) == contents(BUILT), "run scripts/console build and commit"


def test_the_first_page_is_small() -> None:
    page = (BUILT / "index.html").read_text()
    first = re.findall(r'(?:src|href)="/console/(assets/[^"]+)"', page)

    sizes = [len(gzip.compress((BUILT / name).read_bytes())) for name in first]

    assert len(first) == 3
    assert sum(sizes) + len(page) < 60_000


def test_pages_name_no_other_host() -> None:
    known = {"www.w3.org"}  # the namespace of SVG and MathML, which nobody asks for anything

    hosts = {
        host.decode()
        for content in contents(BUILT).values()
        for host in re.findall(rb"https?://([\w.-]+)", content)
    }

    assert hosts <= known


def test_the_lock_names_no_registry() -> None:
    lock = (SOURCES / "package-lock.json").read_text()

    assert '"resolved"' not in lock
    assert "integrity" in lock
