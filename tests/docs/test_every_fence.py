"""Every shell fence of the pages is run by a test, or at least parsed by the real argument parser.

``_RUN`` names the tests that run a page's fences. In all other fences each call of ``instar`` goes
through the parser of its command, so that a wrong flag, value or argument is found, and every other
program is named in ``_OTHERS`` with the reason why no test runs it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from instar.cli.main import COMMANDS
from tests.support.pages import DOCS, README, ROOT

_ALL = "all fences"
_SH = "all fences of the language sh"
_RUN = {
    "README.md": {_ALL: "tests/docs/test_readme.py"},
    "docs/how-to/aggregated-apis.md": {_ALL: "tests/docs/test_aggregated_apis.py"},
    "docs/how-to/admission.md": {_ALL: "tests/docs/test_tour.py"},
    "docs/how-to/backup.md": dict.fromkeys(
        ("backup", "hot", "restore", "from-snapshot"), "tests/docs/test_operate.py"
    ),
    "docs/how-to/control-plane.md": {_ALL: "tests/docs/test_control_plane.py"},
    "docs/how-to/history.md": {"tour": "tests/docs/test_history.py"},
    "docs/how-to/monitoring.md": {"token": "tests/docs/test_operate.py"},
    "docs/how-to/operate.md": {"start": "tests/docs/test_operate.py"},
    "docs/how-to/rehearse.md": {_ALL: "tests/docs/test_rehearse.py"},
    "docs/how-to/snapshots.md": {"tour": "tests/docs/test_tour.py"},
    "docs/how-to/version-lifecycle.md": {_ALL: "tests/docs/test_guide.py"},
    "docs/how-to/webhook-outage.md": {_SH: "tests/webhooks/test_outage_guide.py"},
    **{
        f"docs/tutorials/{page.name}": {_ALL: "tests/docs/test_tutorials.py"}
        for page in (DOCS / "tutorials").glob("*.md")
    },
}
"""By page: which fences (by the comment in front of them), and the test that runs them."""
_OTHERS = {
    "docker": "no test builds the image; tests/deploy checks the Dockerfile",
    "helm": "no Helm on the machine; tests/deploy renders the chart",
    "go": "needs the reader's Go module",
    "scripts/suites": "needs the reader's Go module",
    "eval": "sets the shell of the reader; tests/envtest runs the command inside",
    "source": "sets the shell of the reader; tests/cli/test_habits.py runs the command inside",
    "pip": "needs a package registry; tests/package installs the wheel",
    "pipx": "needs a package registry; tests/package installs the wheel",
    "uv": "needs a package registry; tests/package installs the wheel",
    "uvx": "needs a package registry; tests/package installs the wheel",
    "python3": "tests/docs/conftest.py builds the same wheel",
    "export": "sets a variable",
    "./scripts/serve": "runs until it is stopped",
    "./scripts/setup": "made the environment of this test",
    "scripts/release": "tests/package/test_release.py runs it",
    ".venv/bin/python": "measures for minutes; mypy checks the programs",
    "curl": "tests/console asks the same path",
    "kubectl": "changes the cluster of the reader; tests/deploy checks the object",
    "base64": "encodes a file of the reader's cluster",
    "tr": "joins the lines of base64",
    "jq": "reads the file of the tour, which tests/docs/test_tour.py takes",
    "tar": "reads the file of the tour, which tests/docs/test_tour.py takes",
}
_FENCE = re.compile(
    r"(?:^ *<!-- ([\w-]+) -->\n)?^ *```(sh|bash|console)(?: [^\n]*)?\n(.*?)^ *```",
    re.MULTILINE | re.DOTALL,
)


class Fence(NamedTuple):
    page: str
    name: str
    language: str
    text: str


def _fences() -> Iterator[Fence]:
    for page in (README, ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))):
        for found in _FENCE.findall(page.read_text()):
            yield Fence(str(page.relative_to(ROOT)), *found)


def _is_run(fence: Fence) -> bool:
    by = _RUN.get(fence.page, {})
    return _ALL in by or fence.name in by or (_SH in by and fence.language == "sh")


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each command: lines joined where they go on, split at pipes."""
    prompted = re.search(r"^ *\$ ", text, re.MULTILINE) is not None
    for line in text.replace("\\\n", " ").splitlines():
        if prompted and not line.lstrip().startswith("$ "):
            continue
        words = shlex.split(line.strip().removeprefix("$ "), comments=True)
        command: list[str] = []
        for word in [*words, "|"]:
            if word in ("|", "&&", ";"):
                if command:
                    yield command
                command = []
            else:
                command.append(word)


_UNRUN = [fence for fence in _fences() if not _is_run(fence)]
_WORDS = sorted({(fence.page, tuple(words)) for fence in _UNRUN for words in _commands(fence.text)})
_CALLS = [(page, words) for page, words in _WORDS if words[0] == "instar"]


@pytest.mark.parametrize(("page", "words"), _CALLS)
def test_a_call_that_no_test_runs_is_understood_by_its_command(
    page: str, words: tuple[str, ...]
) -> None:
    name, *arguments = words[1:]
    assert name in COMMANDS, page
    parser = argparse.ArgumentParser(prog=f"instar {name}")
    importlib.import_module(f"instar.cli.commands.{name}").add_arguments(parser)
    kept = arguments[: arguments.index(">")] if ">" in arguments else arguments

    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            parser.parse_args(kept)
        except SystemExit:
            pytest.fail(f"{page}: {shlex.join(words)}: {said.getvalue().splitlines()[-1]}")


def test_every_other_program_of_a_fence_that_no_test_runs_has_its_reason() -> None:
    unexplained = {
        f"{page}: {shlex.join(words)}"
        for page, words in _WORDS
        if words[0] != "instar" and words[0] not in _OTHERS
    }

    assert unexplained == set()


@pytest.mark.parametrize("page", _RUN)
def test_the_test_that_runs_a_page_names_it(page: str) -> None:
    folder, _, name = page.rpartition("/")

    for test in _RUN[page].values():
        text = (ROOT / test).read_text()
        assert name in text or "README" in text or f'"{folder.rpartition("/")[2]}"' in text


def test_every_named_fence_of_the_table_is_on_its_page() -> None:
    shown = {(fence.page, fence.name) for fence in _fences()}

    missing = [
        (page, name)
        for page, by in _RUN.items()
        for name in by
        if name not in (_ALL, _SH) and (page, name) not in shown
    ]

    assert missing == []
