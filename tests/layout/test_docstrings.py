"""Module docstrings name other files: each of them exists, so that a reader can open it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "instar"
NAMED = re.compile(
    r"`+((?:\w+/)*\w+\.py|(?:instar|base|kube|wire|server|registry|tools|cli)/[\w/]+)`+"
)
"""A Python file, or a folder below a group, between back quotes."""


def test_every_file_that_a_module_docstring_names_exists() -> None:
    missing = [
        f"{file.relative_to(ROOT)}: {named}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for named in _named(file)
        if not _exists(file, named)
    ]

    assert missing == []


def _named(file: Path) -> Iterator[str]:
    text = ast.get_docstring(parsed(file)) or ""
    for match in NAMED.finditer(text):
        yield match[1]


def _exists(file: Path, named: str) -> bool:
    """Return whether the name fits: from the repository, the package, or a folder around it."""
    folders = [ROOT, PACKAGE, *file.parents]
    return any((folder / named).exists() for folder in folders if folder.is_relative_to(ROOT))


CALLED = re.compile(
    r"(?:Called|Used|Created|Raised|Opened|Filled) by ((?:``[\w/.]+``(?:, | and )?)+)"
)
"""The callers that a docstring names; what follows as ``through …`` is not an import."""


def test_every_caller_that_a_module_docstring_names_imports_the_module() -> None:
    modules = {_module(file): file for file in sorted(PACKAGE.rglob("*.py"))}
    imported = {name: _imports(name, file) for name, file in modules.items()}
    by_name: dict[str, list[str]] = {}
    for name in modules:
        by_name.setdefault(name.rpartition(".")[2], []).append(name)

    wrong = [
        f"{file.relative_to(ROOT)}: {caller}"
        for name, file in modules.items()
        for caller in _callers(file)
        if not any(
            _uses(imported, other, name)
            for other in by_name.get(_path(caller).rpartition(".")[2], ())
            if _is_named(other, name, caller)
        )
    ]

    assert wrong == []


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(name: str, file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found - {name}


def _callers(file: Path) -> Iterator[str]:
    text = " ".join((ast.get_docstring(parsed(file)) or "").split())
    for match in CALLED.finditer(text):
        if not text[match.end() :].lstrip().startswith(("through", ", through", "on every write")):
            yield from re.findall(r"``([\w/]+\.py)``", match[1])


def _is_named(other: str, module: str, caller: str) -> bool:
    """Return whether ``caller`` is a path of the other module; a bare name is next to this one."""
    path = _path(caller)
    return other == f"{module.rpartition('.')[0]}.{path}" or other.endswith(f".{path}")


def _path(caller: str) -> str:
    return caller.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _uses(imported: dict[str, set[str]], caller: str, module: str) -> bool:
    """Return whether the caller imports the module, or the package that passes it on."""
    package = module.rpartition(".")[0]
    passed_on = package in imported[caller] and module in imported.get(package, set())
    inside = any(name.startswith(f"{module}.") for name in imported[caller])
    return module in imported[caller] or passed_on or inside
