"""The reviewer in a pipeline: several forms at once, merge bases, shallow clones, and the files
that others include."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.cli.main import main
from tests.e2e.make import widget_crd

ROOT = Path(__file__).resolve().parents[2]


def _git(folder: Path, *words: str) -> None:
    named = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)


def _crd(folder: Path, *, maximum: int) -> Path:
    crd = widget_crd("ci.example.com")
    schema: Any = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["limit"] = {"type": "integer", "maximum": maximum}
    path = folder / "crds" / "widget.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(crd))
    return path


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """main: 9, then 7; the branch that began before that: 8."""
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    for branch, maximum in (("main", 9), ("main", 7)):
        _crd(folder, maximum=maximum)
        _git(folder, "add", ".")
        _git(folder, "commit", "-qm", branch)
    _git(folder, "checkout", "-q", "-b", "change", "main~1")
    _crd(folder, maximum=8)
    _git(folder, "commit", "-qam", "change")
    monkeypatch.chdir(folder)
    return folder


def test_a_branch_is_compared_with_where_it_began(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    against_tip = main(["review", "git:main:crds", "crds"])
    capsys.readouterr()
    against_base = main(["review", "git:main...:crds", "crds"])

    assert against_tip == 0, "7 → 8 takes more than before"
    assert against_base == 1, "9 → 8 takes less"
    assert "maximum-tightened" in capsys.readouterr().out


def test_a_shallow_clone_gets_the_command_to_fetch_more(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clone = tmp_path / "shallow"
    _git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    monkeypatch.chdir(clone)

    assert main(["review", "git:origin/main...:crds", "crds"]) == 2

    assert "fetch-depth: 0" in capsys.readouterr().out


def test_one_run_writes_every_form(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sarif, markdown = tmp_path / "it.sarif", tmp_path / "it.md"
    words = ["-o", "github", "-o", f"sarif={sarif}", "-o", f"markdown={markdown}"]

    assert main(["review", "git:main...:crds", "crds", *words]) == 1

    assert capsys.readouterr().out.startswith("::error file=crds/widget.yaml,line=")
    assert json.loads(sarif.read_text())["runs"][0]["results"]
    assert markdown.read_text().startswith("## CRD review")


def test_paths_are_relative_to_the_root_of_the_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository / "crds")

    main(["review", "git:main...:.", ".", "-o", "github"])

    assert "file=crds/widget.yaml" in capsys.readouterr().out


@pytest.mark.parametrize("pattern", ["widget.yaml", "crds/wid*", "*.yaml"])
def test_files_can_be_left_out(
    repository: Path, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", "crds", "--exclude", pattern]) == 2

    assert "no CRD in there" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["-o", "poem"], ["-o", "text", "-o", "json"], ["--explain", "nothing"]]
)
def test_an_unprintable_format_is_a_usage_error(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", "whatever.yaml", *words]) == 2

    assert capsys.readouterr().err.count("\n") == 1


def test_a_rule_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", "--explain", "maximum-tightened"]) == 0

    assert "hits: writers, stored objects" in capsys.readouterr().out


def _calls() -> list[tuple[str, str]]:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    gitlab = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())
    texts = [step.get("run", "") for step in action["runs"]["steps"]]
    texts += [hook["entry"] for hook in hooks] + gitlab[".instar-review"]["script"]
    joined = "\n".join(texts).replace("\\\n", " ")
    return re.findall(r"^\s*instar ([a-z]+)(.*)$", joined, re.MULTILINE)


@pytest.mark.parametrize(("command", "rest"), _calls())
def test_published_actions_and_hooks_use_existing_flags(command: str, rest: str) -> None:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"instar.cli.commands.{command}").add_arguments(parser)
    flags = [word for word in shlex.split(rest) if re.fullmatch(r"--?[a-z][a-z-]*", word)]

    assert set(flags) <= set(parser._option_string_actions)
