"""Foreign text reaches a shell hint, an SQL statement, XML or HTML only through its escaping
function: these are found in the source, so that a new place without one fails here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "instar").rglob("*.py"))
COMMAND = re.compile(
    r"(?:^|[\s`(:'])(?:instar (?:migrate|versions|census|fields|review|serve|restore|snapshot"
    r"|rehearse|upgrade|validate|storage|convert|check|types)|kubectl)(?: [^;,.]*)?(?: |=|/)$"
)
"""Text that ends inside a command to copy."""
NO_COMMAND = {
    ("instar/kube/models/modules.py", "style"): "one of our own styles",
    ("instar/tools/migrator/census/version_census.py", "record.finished"): "a time in a sentence",
    ("instar/cli/commands/restore.py", "command"): "made of shell words",
    ("instar/tools/migrator/migration.py", "about"): "made of shell words",
    ("instar/tools/migrator/progress_file.py", "path"): "a sentence",
    ("instar/tools/reviewer/render/pull_request_comment.py", "plain"): "letters in a comment",
    ("instar/tools/sdk/checking/render.py", "report.crd"): "the name of a test suite",
}
SQL = re.compile(r"^\s*(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|DROP|PRAGMA|ATTACH) ")
SQL_PARTS = re.compile(r"^_?[A-Z_]+$|^marks$|^placeholders$")
"""Constants of the module, and lists of question marks."""


def _formatted(path: Path) -> Iterator[ast.JoinedStr]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.JoinedStr):
            yield node


def _unquoted(node: ast.JoinedStr) -> Iterator[str]:
    text = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            called = getattr(getattr(part.value, "func", None), "id", "")
            if COMMAND.search(text) and called != "shell_word":
                yield ast.unparse(part.value)
            text += "x"


def test_every_word_of_a_command_to_copy_is_quoted() -> None:
    found = {
        (str(path.relative_to(ROOT)), value)
        for path in SOURCES
        for node in _formatted(path)
        for value in _unquoted(node)
    }

    assert found == NO_COMMAND.keys(), "use shell_word, or say here why it is no command"


def test_no_value_is_written_into_an_sql_statement() -> None:
    for path in SOURCES:
        for node in _formatted(path):
            first = node.values[0]
            if not (isinstance(first, ast.Constant) and SQL.match(str(first.value))):
                continue
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    value = ast.unparse(part.value)
                    assert SQL_PARTS.match(value), f"{path.relative_to(ROOT)}: {value}"


def test_html_and_xml_are_written_by_the_escaping_functions_alone() -> None:
    """``html.escape`` and ``tostring`` let characters through that end a document."""
    allowed = {"instar/base/escaping.py"}
    for path in SOURCES:
        name, text = str(path.relative_to(ROOT)), path.read_text()
        if name not in allowed:
            assert "from html import" not in text, name
            assert ".tostring(" not in text, name
