"""``--converter`` has one spelling in every command: ``[CRD=]MODULE:NAME`` or a file's path."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.cli.main import COMMANDS, main, parser_of
from instar.cli.serving.converter_flags import load_converters, why_unused
from instar.cli.shared.converters import METAVAR
from instar.kube.api.crd import read_crd
from tests.support.server import live_server

EXAMPLES = Path(__file__).parents[2] / "examples" / "hostport"
CRD = "crontabs.example.com"
MODULE = "flag_conversion"
RULES = "./rules=1/conversion.yaml"
"""An equals sign after a slash belongs to the path."""
SPELLINGS = [f"{MODULE}:crontab", f"{CRD}={MODULE}:crontab", RULES, f"{CRD}={RULES}"]
WRONG = {
    "crontabs.example.com": "neither package.module:converter nor a .yaml file",
    f"CronTab={MODULE}:crontab": "'CronTab' is not the name of a CRD",
    f"={MODULE}:crontab": "'' is not the name of a CRD",
    f"{CRD}=": METAVAR,
    f"crontabs.other.com={MODULE}:crontab": "converts CronTab.example.com",
    f"{MODULE}:nothing": "has no attribute 'nothing'",
    "no.such:converter": "there is no module",
}
CALLS: dict[str, tuple[str, ...]] = {
    "check": ("--crd", "crd.yaml", "--examples", "1", "--laws", "round-trip", "--no-progress"),
    "convert": ("--to", "v1", "before/sample.yaml"),
    "rehearse": ("--from", "before", "--to", "crd.yaml", "--jobs", "1", "--no-faults"),
    "review": ("crd.yaml",),
    "test": ("crontab.suite.yaml", "--crd", "crd.yaml"),
}
"""Every command that takes the flag and ends by itself, with the rest of a call that succeeds."""
SUITE = """\
name: CronTab
crdName: crontabs.example.com
tests:
  onConvert:
  - name: the port is split off
    version: v1
    initial: |
      apiVersion: example.com/v1beta1
      kind: CronTab
      hostPort: "localhost:1234"
    expected: |
      apiVersion: example.com/v1
      kind: CronTab
      host: localhost
      port: "1234"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for folder in ("before", "rules=1"):
        (tmp_path / folder).mkdir()
    shutil.copy(EXAMPLES / "conversion.yaml", tmp_path / RULES)
    (tmp_path / f"{MODULE}.py").write_text(
        "from instar.tools.sdk.loading import load\n"
        f"crontab = load({str(EXAMPLES / 'conversion.yaml')!r})\n"
    )
    for folder in (".", "before"):
        shutil.copy(EXAMPLES / "crd.yaml", tmp_path / folder)
    sample = yaml.safe_load((EXAMPLES / "sample.yaml").read_text())
    sample["metadata"]["namespace"] = "default"
    (tmp_path / "before" / "sample.yaml").write_text(yaml.safe_dump(sample))
    (tmp_path / "crontab.suite.yaml").write_text(SUITE)
    return tmp_path


def _crontabs() -> dict[str, Any]:
    crd: dict[str, Any] = yaml.safe_load((EXAMPLES / "crd.yaml").read_text())
    return crd


def test_every_command_that_takes_a_converter_is_in_the_table() -> None:
    taking = {
        command
        for command in COMMANDS
        for action in parser_of(command)._actions
        if "--converter" in action.option_strings
    }

    assert taking == {*CALLS, "serve"}


@pytest.mark.parametrize("command", [*CALLS, "serve"])
def test_the_flag_may_be_repeated_and_has_one_help_text(command: str) -> None:
    [flag] = [each for each in parser_of(command)._actions if "--converter" in each.option_strings]

    assert isinstance(flag, argparse._AppendAction)
    assert flag.metavar == METAVAR
    assert str(flag.help).startswith("a converter, or [CRD=]conversion.yaml; may be repeated.")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("command", CALLS)
def test_every_spelling_converts(
    here: Path, capfd: pytest.CaptureFixture[str], command: str, spelling: str
) -> None:
    code = main([command, "--converter", spelling, *CALLS[command]])

    out, err = capfd.readouterr()
    assert (code, err) == (0, ""), out
    assert "Not tested" not in out


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_converts_in_a_server(here: Path, spelling: str) -> None:
    sample = yaml.safe_load((here / "before" / "sample.yaml").read_text())
    with live_server(converters=load_converters([spelling])) as server:
        server.create_crd(_crontabs())
        stored = server.request(
            "POST", "/apis/example.com/v1beta1/namespaces/default/crontabs", sample
        )
        read = server.request(
            "GET", "/apis/example.com/v1/namespaces/default/crontabs/local-crontab"
        )

    assert stored.status == 201, stored.text
    assert read.json["host"] == "localhost"


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_server_tells_of_a_converter_that_strategy_none_never_calls(
    here: Path, spelling: str
) -> None:
    crd = {**_crontabs()}
    crd["spec"]["conversion"] = {"strategy": "None"}

    problem = why_unused(load_converters([spelling]), [read_crd(crd)])

    assert "strategy is None" in str(problem)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("command", [*CALLS, "serve"])
def test_a_wrong_spelling_is_one_line_and_two(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, wrong: str
) -> None:
    rest = CALLS.get(command, ("--storage", "memory:", "--listen", "127.0.0.1:0"))

    assert main([command, "--converter", wrong, *rest]) == 2

    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"instar {command}: --converter {wrong}: ")
    assert WRONG[wrong] in line


@pytest.mark.parametrize("command", [*CALLS, "serve"])
def test_two_converters_of_one_kind_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    rest = CALLS.get(command, ("--storage", "memory:", "--listen", "127.0.0.1:0"))

    code = main([command, "--converter", SPELLINGS[0], "--converter", SPELLINGS[2], *rest])

    assert code == 2
    assert "both" in capsys.readouterr().err


def test_a_check_of_a_crd_that_no_given_converter_converts_names_both(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crd = (here / "crd.yaml").read_text().replace("kind: CronTab", "kind: Timetable")
    (here / "crd.yaml").write_text(crd)

    assert main(["check", "--converter", SPELLINGS[0], *CALLS["check"]]) == 2

    told = capsys.readouterr().err
    assert "Timetable.example.com" in told
    assert "CronTab.example.com" in told


def test_a_review_tries_a_converter_on_its_own_crd_only(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = (
        (here / "crd.yaml").read_text().replace("crontab", "widget").replace("CronTab", "Widget")
    )
    (here / "crd.yaml").write_text(f"{(here / 'crd.yaml').read_text()}---\n{other}")

    assert main(["review", "--converter", SPELLINGS[0], "crd.yaml"]) == 0

    assert "conversion-fails" not in capsys.readouterr().out
