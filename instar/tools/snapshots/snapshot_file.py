"""Opens a snapshot file, or the folder it was unpacked to, as a ``CapturedCluster``, checked by its
manifest.

``sources.py`` calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from instar.base.plurals import counted
from instar.tools.snapshots.archive import Archive
from instar.tools.snapshots.captured_cluster import CapturedCluster
from instar.tools.snapshots.inflate import TruncatedGzip
from instar.tools.snapshots.manifest import (
    MANIFEST,
    SUFFIX,
    USAGE,
    VERSION,
    Manifest,
    is_manifest,
    read_manifest,
)
from instar.tools.snapshots.parts import Digest, SnapshotPart, digest, small_document


class _FoundMember(NamedTuple):
    open: Callable[[], BinaryIO]
    digest: Digest


def open_archive(path: Path, closing: Callable[[], None] = lambda: None) -> CapturedCluster | None:
    """Open an archive; None if it is not a snapshot."""
    archive = Archive(path)
    found: dict[str, _FoundMember] = {}
    document: object = None
    folder = cut = ""
    try:
        for member, stream in archive.walk():
            above, _, name = member.name.rpartition("/")
            if name == MANIFEST and not is_manifest(document):
                document, folder = small_document(stream, f"{path}: {member.name}"), above
            elif name.endswith(SUFFIX) or name == USAGE:
                found[member.name] = _FoundMember(partial(archive.open, member), digest(stream))
    except TruncatedGzip as error:
        cut = f"{path}: {error}: the file is not whole"
    if not is_manifest(document):
        return None
    # an archive made by hand may have everything in a folder
    front = f"{folder}/" if folder else ""
    mine = {name.removeprefix(front): each for name, each in found.items()}
    problems = [cut] if cut else []
    problems += [f"{path}: {name!r} is no file to be read" for name in archive.refused]
    return _captured_cluster(read_manifest(document, str(path)), mine, problems, closing)


def open_folder(path: Path) -> CapturedCluster | None:
    """Open a folder that ``tar`` unpacked; None if it is not a snapshot."""
    manifest = path / MANIFEST
    if not manifest.is_file():
        return None
    with manifest.open("rb") as stream:
        document = small_document(stream, str(manifest))
    if not is_manifest(document):
        return None
    found: dict[str, _FoundMember] = {}
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.is_symlink() and file != manifest:
            with file.open("rb") as stream:
                held = digest(stream)
            found[file.relative_to(path).as_posix()] = _FoundMember(partial(_opened, file), held)
    return _captured_cluster(read_manifest(document, str(path)), found, [])


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")


def _captured_cluster(
    manifest: Manifest,
    found: Mapping[str, _FoundMember],
    problems: list[str],
    closing: Callable[[], None] = lambda: None,
) -> CapturedCluster:
    if manifest.version != VERSION:
        problems.append(
            f"it is of version {manifest.version} of the format and this instar knows "
            f"{VERSION}: what is new in it is not read"
        )
    if not manifest.complete:
        problems.append("the snapshot says of itself that it is not complete")
    problems += manifest.problems
    parts = list(_parts(manifest, found, problems))
    return CapturedCluster(
        manifest.origin,
        parts,
        problems=problems,
        exact=manifest.exact,
        taken=manifest.started,
        closing=closing,
    )


def _parts(
    manifest: Manifest, found: Mapping[str, _FoundMember], problems: list[str]
) -> Iterator[SnapshotPart]:
    for row in manifest.parts:
        there = found.get(row.name)
        if there is None:
            if row.count:
                problems.append(f"{row.name}: not there; {counted(row.count, 'object')} unknown")
            if row.count or row.missing:
                yield SnapshotPart(row.name, _nothing, 0, missing=row.count + row.missing)
            continue
        held = there.digest
        missing = max(row.count - held.lines, 0)
        if missing:
            problems.append(f"{row.name}: {held.lines} of {counted(row.count, 'object')} there")
        elif held.sha256 != row.sha256:
            problems.append(f"{row.name}: changed after it was written")
        yield SnapshotPart(row.name, there.open, held.lines, missing=missing + row.missing)
    named = {row.name for row in manifest.parts}
    for name, there in found.items():
        if name not in named:
            problems.append(f"{name}: the manifest does not name it")
            yield SnapshotPart(name, there.open, there.digest.lines)


def _nothing() -> BinaryIO:
    return BytesIO()
