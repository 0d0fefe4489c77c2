"""Every text file is read and written as UTF-8, whatever the locale: manifests, kubeconfigs and
configurations are UTF-8 by their own standards."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
_PATH_METHODS = {"read_text", "write_text"}
_OPENERS = {"open", "fdopen", "NamedTemporaryFile", "TemporaryFile"}
_PROCESSES = {"run", "Popen", "check_output"}


def _text_mode(call: ast.Call, name: str, owner: ast.expr | None) -> bool:
    """Whether the call opens a file as text. ``NamedTemporaryFile`` is binary by itself, and a
    method ``open`` belongs to a path only where it is given a mode or ``newline``.
    """
    words = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    modes = [
        each.value
        for each in words
        if isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and re.fullmatch(r"[rwax][bt+]*", each.value)
    ]
    if modes:
        return "b" not in modes[0]
    if any(word.arg == "newline" for word in call.keywords):
        return True
    return name == "open" and owner is None and len(call.args) < 2


def _unnamed(tree: ast.AST) -> Iterator[int]:
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        owner = function.value if isinstance(function, ast.Attribute) else None
        keywords = {word.arg for word in call.keywords}
        if "encoding" in keywords:
            continue
        if (owner is not None and name in _PATH_METHODS) or (
            name in _OPENERS and _text_mode(call, name, owner)
        ):
            yield call.lineno
        if name in _PROCESSES and keywords & {"text", "universal_newlines"}:
            yield call.lineno


def test_no_text_is_read_or_written_in_the_encoding_of_the_locale() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "instar").rglob("*.py"))
        for line in _unnamed(parsed(path))
    ]

    assert found == []
