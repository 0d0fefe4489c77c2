"""Writes a snapshot: the parts are written in a private folder next to the file and joined at the
end.

``capture/taking.py`` calls it. Each batch of lines is a separate gzip member. So an interrupted
part resumes after its last batch, parts are joined by concatenation without compressing again, and
a reader can start at any part.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from gzip import GzipFile
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.limits import KIB
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.manifest import MANIFEST, Manifest, Row

_LEVEL = 4
_BLOCK = 512
_PRIVATE = 0o600
_GZIP = 31


@dataclass
class GrowingPart:
    """A part being written."""

    name: str
    path: Path
    count: int = 0
    size: int = 0
    packed: int = 0
    """Size of its file in whole batches."""
    versions: Counter[str] = field(default_factory=Counter)
    _hash: object = field(default_factory=sha256)

    def add(self, objects: Iterable[Object]) -> None:
        """Append one batch and fsync it. Slow: call it in a thread."""
        rows = list(objects)
        if not rows:
            return
        data = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        self.write(data, len(rows))
        for row in rows:
            self.versions[str(row.get("apiVersion", "")).rpartition("/")[2]] += 1

    def write(self, data: bytes, count: int) -> None:
        packed = _packed(data)
        with _private(self.path, "ab") as file:
            file.write(packed)
        self.packed += len(packed)
        self._note(data, count)

    def resume(self, packed: int, versions: Mapping[str, int]) -> None:
        """Resume an interrupted part: bytes after the last journal entry are dropped."""
        with self.path.open("r+b") as file:
            file.truncate(packed)
        self.packed, self.versions = packed, Counter(dict(versions))
        with GzipFile(self.path) as stream:
            while data := stream.read(256 * KIB):
                self._note(data, data.count(b"\n"))

    def _note(self, data: bytes, count: int) -> None:
        self._hash.update(data)  # type: ignore[attr-defined]
        self.size += len(data)
        self.count += count

    def row(self, revision: str = "", *, consistent: bool = True, missing: int = 0) -> Row:
        return Row(
            name=self.name,
            count=self.count,
            size=self.size,
            sha256=self._hash.hexdigest(),  # type: ignore[attr-defined]
            revision=revision,
            consistent=consistent,
            versions=dict(self.versions),
            missing=missing,
        )


class SnapshotWriter:
    """Writer of one snapshot."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.folder = target.with_name(f"{target.name}.partial")

    def start(self) -> None:
        """Start a new snapshot and delete the files of an interrupted run."""
        self.discard()
        try:
            self.folder.mkdir(mode=0o700)
        except OSError as error:
            raise SnapshotError(f"{self.folder}: {error.strerror}") from None

    def discard(self) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(self.folder)

    def key(self) -> bytes:
        """Return a secret that is deleted with the folder."""
        path = self.folder / "key"
        if not path.exists():
            with _private(path, "wb") as file:
                file.write(os.urandom(32))
        return path.read_bytes()

    def part(self, name: str) -> GrowingPart:
        """Start a part, replacing an older one."""
        path = self._path(name)
        path.unlink(missing_ok=True)
        return GrowingPart(name, path)

    def part_again(self, name: str, packed: int, versions: Mapping[str, int]) -> GrowingPart:
        grown = GrowingPart(name, self._path(name))
        if packed:
            grown.resume(packed, versions)
        return grown

    def document(self, name: str, value: object) -> Row:
        """Write a part that consists of one document."""
        grown = self.part(name)
        grown.write(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n", 1)
        return grown.row()

    def finish(self, manifest: Manifest) -> None:
        """Join the parts to the file atomically, and delete the folder."""
        beside = self.folder / "packed"
        with _private(beside, "wb") as file:
            head = orjson.dumps(manifest.document(), option=orjson.OPT_INDENT_2) + b"\n"
            file.write(_packed(_framed(MANIFEST, head)))
            for row in manifest.parts:
                if row.count:
                    file.write(_packed(_header(row.name, row.size)))
                    with self._path(row.name).open("rb") as part:
                        shutil.copyfileobj(part, file, 256 * KIB)
                    file.write(_packed(b"\0" * (-row.size % _BLOCK)))
            file.write(_packed(b"\0" * (2 * _BLOCK)))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.target)
        self.discard()

    def _path(self, name: str) -> Path:
        # names of CRDs have no slash, but a name from a cluster is not trusted
        return self.folder / (name.replace("/", "+") + ".gz")


def _packed(data: bytes) -> bytes:
    engine = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return engine.compress(data) + engine.flush()


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, _PRIVATE
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _framed(name: str, data: bytes) -> bytes:
    return _header(name, len(data)) + data + b"\0" * (-len(data) % _BLOCK)


def _private(path: Path, mode: str) -> BinaryIO:
    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, _PRIVATE)

    try:
        return open(path, mode, opener=opener)  # type: ignore[return-value]
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror}") from None
