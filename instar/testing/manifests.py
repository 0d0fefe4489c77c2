"""What a test may name as manifests: a file, a folder, an object. Knows no server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from instar.api.manifests import SUFFIXES, documents, members

Source = str | Path | Mapping[str, Any]


def read_manifests(source: Source) -> Iterator[dict[str, Any]]:
    """Every object of a source, members of ``List``s one by one. A folder is read whole, in the
    order of names."""
    if isinstance(source, Mapping):
        yield dict(source)
        return
    path = Path(source)
    files = sorted(_below(path)) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"{path}: no manifests (*{', *'.join(SUFFIXES)}) in this folder")
    for file in files:
        for document in documents(file.read_text(encoding="utf-8"), str(file)):
            for member in members(document):
                if isinstance(member.value, dict):
                    yield member.value


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix in SUFFIXES and path.is_file() and not hidden:
            yield path
