"""The package as others get it: built from a clean copy, installed outside of the repository."""

from __future__ import annotations

import email.message
import email.parser
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from itertools import chain
from pathlib import Path

import pytest

import instar
from instar.cli.main import COMMANDS, EXTRAS, OPTIONAL

ROOT = Path(__file__).resolve().parents[2]
_BUILD = "import sys, flit_core.buildapi as b; print(b.build_{kind}(sys.argv[1]))"


def _clean(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, **more}


def _run(*words: object, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=_clean(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a clone holds: the files git knows."""
    copy = tmp_path_factory.mktemp("clone")
    listed = _run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.stdout.split("\0")):
        wanted = name.startswith(("instar/", "docs/", "examples/", "requirements/"))
        if (wanted or "/" not in name) and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, so that both are proven to be whole."""
    built = tmp_path_factory.mktemp("dist")
    sdist = _run(sys.executable, "-c", _BUILD.format(kind="sdist"), built, cwd=source)
    _run("tar", "-xzf", built / sdist.stdout.strip(), cwd=built)
    unpacked = built / sdist.stdout.strip().removesuffix(".tar.gz")
    made = _run(sys.executable, "-c", _BUILD.format(kind="wheel"), built, cwd=unpacked)
    return built / made.stdout.strip()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; what it depends on is lent by our own."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    _run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel,
         cwd=folder)  # fmt: skip
    places = [each for each in sys.path if each.endswith("site-packages")]
    where = _run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    # Paths in a .pth are searched, but their own .pth files, which would lead here, are not read.
    Path(where.stdout.strip(), "lent.pth").write_text("\n".join(places))
    return folder


def _metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if each.endswith("/METADATA")]
        return email.parser.Parser().parsestr(archive.read(name).decode())


def test_building_leaves_nothing_behind(source: Path, wheel: Path) -> None:
    found = {path.name for path in source.iterdir()}

    assert wheel.exists()
    assert not found & {"build", "dist"}
    assert not [name for name in found if name.endswith(".egg-info")]


def test_the_metadata_names_the_audience(wheel: Path) -> None:
    metadata = _metadata(wheel)

    assert metadata["Version"] == instar.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Framework :: Pytest" in metadata.get_all("Classifier", [])
    assert {"server", "sdk", "review", "all"} <= set(metadata.get_all("Provides-Extra", []))


def test_dependencies_are_ranges_and_the_core_is_small(wheel: Path) -> None:
    required = _metadata(wheel).get_all("Requires-Dist", [])
    core = [each for each in required if "extra ==" not in each]

    assert len(core) <= 4, core
    assert not [each for each in required if "==" in each.partition(";")[0]]


def test_every_pin_of_ours_is_within_the_ranges_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    named = {re.split(r"[><=\[]", each)[0].lower() for each in wanted} - {"instar"}
    pins = (ROOT / "requirements" / "base.txt").read_text().split()

    assert {pin.partition("==")[0].lower() for pin in pins} == named


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_runs_from_the_wheel(installed: Path, tmp_path: Path, command: str) -> None:
    done = _run(installed / "bin" / "instar", command, "--help", cwd=tmp_path)

    assert done.stdout.startswith(f"usage: instar {command}")


def test_the_wheel_is_what_runs(installed: Path, tmp_path: Path) -> None:
    code = "import instar.kube.facts.block_file as s, instar; print(instar.__file__)"
    done = _run(installed / "bin" / "python", "-c", code, cwd=tmp_path)

    assert str(installed) in done.stdout


def test_kubectl_finds_the_plugin(installed: Path, tmp_path: Path) -> None:
    done = _run(installed / "bin" / "kubectl-instar", "--version", cwd=tmp_path)

    assert done.stdout == f"instar {instar.__version__}\n"


def test_a_suite_elsewhere_gets_the_server_by_its_fixture(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it(instar, instar_namespace):\n"
        "    path = f'/api/v1/namespaces/{instar_namespace}'\n"
        "    assert instar.request('GET', path).status == 200\n"
    )
    done = _run(installed / "bin" / "python", "-m", "pytest", "-q", cwd=tmp_path)

    assert "1 passed" in done.stdout


def test_each_command_names_its_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert set(EXTRAS) == set(COMMANDS)
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])


_MODULES = {"pynacl": "nacl", "ruamel.yaml": "ruamel"}


def _brought(extra: str) -> set[str]:
    """Modules that ``instar[extra]`` installs, named as they are imported."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    found = set()
    for wanted in extras[extra]:
        inner = re.fullmatch(r"instar\[(.+)\]", wanted)
        if inner is not None:
            found |= set().union(*map(_brought, inner[1].split(",")))
        else:
            name = re.split(r"[><=]", wanted)[0].lower()
            found.add(_MODULES.get(name, name))
    return found | ({"sortedcontainers"} if "hypothesis" in found else set())


@pytest.mark.parametrize("extra", sorted(set(EXTRAS.values())))
def test_a_command_starts_with_nothing_but_its_extra(tmp_path: Path, extra: str) -> None:
    commands = [command for command, needed in EXTRAS.items() if needed == extra]
    code = (
        "import sys\n"
        f"for name in {sorted(OPTIONAL - _brought(extra))!r}: sys.modules[name] = None\n"
        "from instar.cli.main import parser_of\n"
        f"for command in {commands!r}: parser_of(command)\n"
    )
    _run(sys.executable, "-c", code, cwd=tmp_path)


def test_a_command_without_its_extra_says_which(tmp_path: Path) -> None:
    """In a process where none of the optional packages can be imported."""
    code = (
        "import sys\n"
        f"for name in {sorted(OPTIONAL)!r}: sys.modules[name] = None\n"
        "from instar.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = _run(sys.executable, "-c", code, "serve", cwd=tmp_path, code=1)

    assert done.stderr.count("\n") == 1
    assert "pip install 'instar[server]'" in done.stderr


def test_the_core_alone_reviews_files(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        f"for name in {sorted(OPTIONAL)!r}: sys.modules[name] = None\n"
        "from instar.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    crd = ROOT / "examples" / "cron" / "crd.yaml"
    done = _run(sys.executable, "-c", code, "review", crd, "--fail-on", "none", cwd=tmp_path)

    assert "crontabs.stable.example.com" in done.stdout
