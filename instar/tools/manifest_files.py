"""Reads manifest texts from files, folders and standard input.

Every tool that takes a path calls it, so that all tools find the same manifests in a folder.
``kube/api/encoding/manifests.py`` parses the texts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePath
from typing import NamedTuple

from instar.kube.api.encoding.manifests import SUFFIXES

STDIN = "-"


class Unopenable(Exception):
    """A path that cannot be read; ``str()`` is one line with the path and the reason."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file, self.problem = file, problem


class Text(NamedTuple):
    """The text of one file."""

    file: str
    text: str


def texts_of(source: str | Path, exclude: Sequence[str] = ()) -> Iterator[Text]:
    """Return the text of a file or of ``-``, or the texts of all manifests of a folder. Raises
    ``Unopenable`` for the first one that cannot be read.
    """
    if str(source) == STDIN:
        yield Text("<stdin>", text_of(STDIN))
        return
    for file in files_of(source, exclude):
        yield Text(str(file), text_of(file))


def files_of(source: str | Path, exclude: Sequence[str] = ()) -> list[Path]:
    """Return the named file, or all manifests of a folder and its subfolders, sorted by name."""
    path = Path(source)
    try:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
    except OSError as error:
        raise _unopenable(error, source) from None
    if found != [path]:
        found = [each for each in found if is_manifest(each.relative_to(path)) and each.is_file()]
    return [each for each in found if not is_excluded(str(each), exclude)]


def text_of(source: str | Path, *, exact: bool = False) -> str:
    """Return the text of one file or of ``-``; ``exact`` keeps its line ends, for a caller that
    writes it back.
    """
    try:
        if str(source) == STDIN:
            return sys.stdin.read()
        with Path(source).open(encoding="utf-8", newline="" if exact else None) as file:
            return file.read()
    except OSError as error:
        raise _unopenable(error, source) from None
    except UnicodeDecodeError:
        name = "<stdin>" if str(source) == STDIN else str(source)
        raise Unopenable(name, "not a text file") from None


def is_manifest(inside: PurePath) -> bool:
    """Return whether the file name, relative to the given folder, is that of a manifest; hidden
    files are not.
    """
    hidden = any(part.startswith(".") for part in inside.parts)
    return inside.suffix in SUFFIXES and not hidden


def is_excluded(file: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern matches: a file name, or a path in which ``*`` matches any part."""
    name = file.rpartition("/")[2]
    return any(fnmatch(name, each) or fnmatch(file, f"*{each}") for each in patterns)


def _unopenable(error: OSError, source: str | Path) -> Unopenable:
    return Unopenable(str(error.filename or source), error.strerror or str(error))
