"""The site can be built without a warning, every link of it leads somewhere, and its reference
tells everything there is."""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from docsite.metrics import cluster_metrics, server_metrics
from docsite.paths import own_paths
from instar.cli.main import COMMANDS, parser_of
from instar.tools.sdk.metrics import ConversionWebhookMetrics
from instar.wire.storage.postgres.metrics import PostgresMetrics
from tests.support.pages import DOCS, ROOT
from tests.support.sources import parsed

METRICS = ("Counter", "Gauge", "Histogram", "Measured")


class Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value is not None:
                self.targets.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Html]:
    """Every page, by its file."""
    folder = tmp_path_factory.mktemp("site").resolve()
    words = ["-m", "sphinx", "-q", "-W", "--keep-going", "-d", f"{folder}/.doctrees"]
    done = subprocess.run(
        [sys.executable, *words, str(DOCS), str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages: dict[Path, Html] = defaultdict(Html)
    for file in folder.rglob("*.html"):
        pages[file].feed(file.read_text())
    return dict(pages)


def test_every_link_of_the_site_leads_somewhere(site: dict[Path, Html]) -> None:
    broken = [
        f"{page.name}: {target}"
        for page, html in site.items()
        for target in html.targets
        if not target.startswith(("https://", "data:")) and not _is_there(site, page, target)
    ]

    assert broken == []


def _is_there(site: dict[Path, Html], page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
    if not anchor:
        return file.exists()
    return file in site and unquote(anchor) in site[file].ids


def test_the_site_fetches_nothing_from_elsewhere(site: dict[Path, Html]) -> None:
    for page in site:
        text = page.read_text()
        assert 'src="http' not in text
        assert 'rel="stylesheet" type="text/css" href="http' not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_reference_tells_every_flag(site: dict[Path, Html], command: str) -> None:
    (ids,) = (html.ids for page, html in site.items() if page.name == "commands.html")

    for program, action in _told(parser_of(command)):
        for name in action.option_strings:
            assert f"cmdoption-{program.replace(' ', '-')}-{name.lstrip('-')}" in ids, name


def _told(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _told(below)
        elif action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
            yield parser.prog, action


def test_the_reference_tells_every_metric_that_is_made_anywhere() -> None:
    others = (*PostgresMetrics().all(), *cluster_metrics(), *ConversionWebhookMetrics().all())
    told = {metric.name for metric in (*server_metrics(), *others)}

    assert _made() - told == set()


def _made() -> set[str]:
    """First arguments of what makes a metric, in the whole code, where they are plain texts."""
    return {
        node.args[0].value
        for file in (ROOT / "instar").rglob("*.py")
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in METRICS
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def test_the_reference_tells_every_path_of_our_own() -> None:
    served = {
        node.value
        for file in (ROOT / "instar" / "server").rglob("*.py")
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("/instar/")
    }

    told = own_paths()
    assert {path for path in served if not any(each.startswith(path) for each in told)} == set()
