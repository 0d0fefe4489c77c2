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
    """A path that cannot be read; ``str()`` says in one line which and why."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file, self.problem = file, problem


class Text(NamedTuple):
    """What one file holds."""

    file: str
    text: str


def texts_of(source: str | Path, exclude: Sequence[str] = ()) -> Iterator[Text]:
    """The text of a file or of ``-``, or those of all manifests of a folder. Raises
    ``Unopenable`` at the first that cannot be read."""
    if str(source) == STDIN:
        yield Text("<stdin>", text_of(STDIN))
        return
    for file in files_of(source, exclude):
        yield Text(str(file), text_of(file))


def files_of(source: str | Path, exclude: Sequence[str] = ()) -> list[Path]:
    """A file as it is named; of a folder all manifests, however deep, in the order of names."""
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
    """By its name below the folder that was given. What is hidden belongs to other programs."""
    hidden = any(part.startswith(".") for part in inside.parts)
    return inside.suffix in SUFFIXES and not hidden


def is_excluded(file: str, patterns: Sequence[str]) -> bool:
    """A pattern is a file's name, or a path with ``*`` for any part of it."""
    name = file.rpartition("/")[2]
    return any(fnmatch(name, each) or fnmatch(file, f"*{each}") for each in patterns)


def _unopenable(error: OSError, source: str | Path) -> Unopenable:
    return Unopenable(str(error.filename or source), error.strerror or str(error))
