"""Opens any source as a captured cluster: ``open_captured_cluster`` detects the format.

The ``rehearse``, ``snapshot`` and ``restore`` commands and ``loading.py`` (``serve --from``) call
it. Formats: a snapshot (the file, or unpacked), a folder of manifests, a dump, a backup's tree or a
must-gather bundle (folders or archives), ``-``, ``git:REF:PATH``, ``kube:[CONTEXT]``.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from instar.base.plurals import counted
from instar.kube.api.encoding.manifests import SUFFIXES
from instar.tools.reviewer.git import GitError, texts_at
from instar.tools.reviewer.sources import ReviewedCluster
from instar.tools.snapshots.archive import Archive
from instar.tools.snapshots.captured_cluster import CapturedCluster
from instar.tools.snapshots.dumps import objects_in
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.inflate import MAGIC, GzipStream, TruncatedGzip
from instar.tools.snapshots.snapshot_file import open_archive, open_folder
from instar.tools.snapshots.spool import Spool

_BLOCK = 512
_MARK = slice(257, 262)

File = tuple[str, BinaryIO]


def open_captured_cluster(source: str, cluster: ReviewedCluster | None = None) -> CapturedCluster:
    """Open a source. Raises ``SnapshotError`` if there is nothing to read. Reads everything once,
    so call it in a thread, not on an event loop.
    """
    scheme, _, rest = source.partition(":")
    if scheme == "kube":
        # Imported lazily: most sources are files, and importing the client takes longer than
        # reading one.
        from instar.tools.snapshots.live import open_cluster

        return open_cluster(rest.removeprefix("//"), cluster or ReviewedCluster())
    if scheme == "git":
        return _spooled(source, lambda _: _from_git(rest))
    if source == "-":
        return _spooled(source, lambda _: iter([("<stdin>", sys.stdin.buffer)]))
    try:
        return _from_path(Path(source.removeprefix("file:")))
    except OSError as error:
        raise SnapshotError(f"{error.filename or source}: {error.strerror or error}") from None


def _from_path(path: Path) -> CapturedCluster:
    if path.is_dir():
        return open_folder(path) or _spooled(str(path), lambda _: _files_below(path))
    if path.exists() and not path.is_file():  # a device may never end
        raise SnapshotError(f"{path}: it is neither a file nor a folder; use - for a pipe")
    with path.open("rb") as file:
        first = _first_block(file)
    if first[_MARK] == b"ustar":
        return open_archive(path) or _spooled(str(path), lambda say: _files_of_archive(path, say))
    return _spooled(str(path), lambda _: _one_file(path))


def _first_block(file: BinaryIO) -> bytes:
    packed = file.read(2) == MAGIC
    file.seek(0)
    stream: BinaryIO = io.BufferedReader(GzipStream(file)) if packed else file
    try:
        return stream.read(_BLOCK)
    except TruncatedGzip:
        return b""


def _one_file(path: Path) -> Iterator[File]:
    with path.open("rb") as file:
        packed = file.read(2) == MAGIC
        file.seek(0)
        yield str(path), io.BufferedReader(GzipStream(file)) if packed else file


def _files_below(folder: Path) -> Iterator[File]:
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(above, name)
            if _wanted(path.relative_to(folder).as_posix()) and path.is_file():
                with path.open("rb") as file:
                    yield str(path), file


def _files_of_archive(path: Path, say: Callable[[str], None]) -> Iterator[File]:
    archive = Archive(path)
    for member, stream in archive.walk():
        if _wanted(member.name):
            yield f"{path}:{member.name}", stream
    for name in archive.refused:
        say(f"{path}: {name!r} is no file to be read")


def _from_git(rest: str) -> Iterator[File]:
    reference, colon, path = rest.partition(":")
    if not colon:
        raise SnapshotError(f"git:{rest}: write git:REF:PATH")
    try:
        for file, text in texts_at(reference, path):
            yield file, io.BytesIO(text.encode())
    except GitError as error:
        raise SnapshotError(f"git:{rest}: {error}") from None


def _wanted(name: str) -> bool:
    """Return whether a file is a manifest. A backup contains each object again at other versions,
    below ``resources/PLURAL.GROUP/VERSION``; those are skipped.
    """
    if not name.endswith(SUFFIXES):
        return False
    parts = name.split("/")
    if "resources" not in parts[:-1]:
        return True
    below = parts[parts.index("resources") + 2 :]
    return len(below) < 2 or below[0] in ("cluster", "namespaces")


def _spooled(
    origin: str, files: Callable[[Callable[[str], None]], Iterator[File]]
) -> CapturedCluster:
    spool = Spool()
    problems: list[str] = []
    try:
        try:
            for name, stream in files(problems.append):
                for obj in objects_in(stream, name, problems.append):
                    spool.add(obj)
        except TruncatedGzip as error:
            problems.append(f"{origin}: {error}: the file is not whole")
        parts = list(spool.parts())
        if not parts:
            why = problems[0] if problems else f"{origin}: no Kubernetes object in there"
            raise SnapshotError(why)
        if spool.foreign:
            problems.append(
                f"{origin}: no Kubernetes objects: {counted(spool.foreign, 'document')}"
            )
        world = CapturedCluster(origin, parts, problems=problems, closing=spool.close)
        for resource, number in world.counts().unknown.items():
            world.note_problem(f"no CRD defines {resource}: {counted(number, 'object')} unknown")
        return world
    except BaseException:
        spool.close()
        raise
