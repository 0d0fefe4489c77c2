"""The source tree is the first document: few entries at the top, one meaning for a class name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "instar"
GROUPS = {"base", "kube", "wire", "server", "tools", "cli"}
PUBLIC = {"sdk", "testing"}
MOST_MODULES = 25
PEOPLE = re.compile(
    r"\b(who|whoever|whom|somebody|someone|nobody|everybody|everyone|anybody|anyone)s?\b", re.I
)
"""Program parts are not people: a text names the client, the worker, the cache."""


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        yield file, parsed(file)


def test_the_top_shows_the_groups_and_the_public_packages() -> None:
    folders = {entry.name for entry in PACKAGE.iterdir() if entry.is_dir()} - {"__pycache__"}

    assert folders == GROUPS | PUBLIC


def test_no_package_has_more_modules_than_a_reader_can_scan() -> None:
    sizes = {
        str(folder.relative_to(ROOT)): len(list(folder.glob("*.py")))
        for folder in [PACKAGE, *PACKAGE.rglob("*")]
        if folder.is_dir() and folder.name != "__pycache__"
    }

    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_a_public_class_name_is_used_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(file.relative_to(ROOT)))

    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_every_module_says_what_it_is() -> None:
    silent = [str(file.relative_to(ROOT)) for file, tree in _modules() if not _described(tree)]

    assert silent == []


def _described(tree: ast.Module) -> bool:
    return bool(ast.get_docstring(tree))


def test_docstrings_and_messages_call_parts_of_the_program_by_their_names() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {match[0]}"
        for file, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        for match in [PEOPLE.search(_prose(node.value))]
        if match
    ]

    assert found == []


def test_test_names_call_parts_of_the_program_by_their_names() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in re.findall(r"def (test_\w+)", file.read_text())
        if PEOPLE.search(name.replace("_", " "))
    ]

    assert found == []


def test_the_readme_of_the_tests_names_every_folder() -> None:
    readme = (ROOT / "tests" / "README.md").read_text()
    folders = {file.parent.name for file in (ROOT / "tests").glob("*/*.py")}

    assert {name for name in folders if f"`{name}" not in readme} == set()


def _prose(text: str) -> str:
    """The text without quoted code and messages, which may be upstream's words."""
    return re.sub(r"``[^`]*``|\"[^\"]*\"|“[^”]*”", "", text)
