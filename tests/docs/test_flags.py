"""Every flag that a command in the docs uses exists; the guides and the tour are run for real."""

from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path

import pytest

from instar.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(?:sh|shell|console|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"\binstar ([a-z]+)\b([^\n|;&]*)")


def calls() -> list[tuple[str, str, str]]:
    """(page, subcommand, flag) of every call inside a fence."""
    found = []
    for page in PAGES:
        for fence in _FENCE.findall(page.read_text()):
            for command, rest in _CALL.findall(fence.replace("\\\n", " ")):
                if command in COMMANDS:
                    flags = re.findall(r"(?<!\S)(--[a-z][a-z-]*)", rest.partition("#")[0])
                    found += [(page.name, command, flag) for flag in flags]
    return sorted(set(found))


@pytest.mark.parametrize(("page", "command", "flag"), calls())
def test_a_flag_in_the_docs_exists(page: str, command: str, flag: str) -> None:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"instar.cli.commands.{command}").add_arguments(parser)

    assert flag in _flags(parser), f"{page} uses instar {command} {flag}"


def _flags(parser: argparse.ArgumentParser) -> set[str]:
    known: set[str] = set()
    for action in parser._actions:
        known.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                known |= _flags(below)
    return known
