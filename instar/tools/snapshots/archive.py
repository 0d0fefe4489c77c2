"""Reader of tar archives, compressed or not: reads them once in order, and then opens any member
again.

``snapshot_file.py`` and ``sources.py`` call it. Nothing is unpacked onto the disk, so no name in an
archive can reach a file; names that point outside the archive are refused all the same. The size of
extended headers is limited, because ``tarfile`` would read a whole header into memory, however
large it claims to be.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from instar.base.fast_dataclass import dataclass
from instar.base.limits import KIB, MAX_ARCHIVE_FILES, MAX_ARCHIVE_RATIO, MIB
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.inflate import MAGIC, GzipStream, TruncatedGzip, enter

_BLOCK = 512
_REGULAR_TYPES = (b"0", b"\0", b"7")
_FOLDER, _PAX, _GLOBAL_PAX, _LONG_NAME = b"5", b"x", b"g", b"L"
_MAX_HEADER_SIZE = 64 * KIB
"""An archive with a larger extended header is refused."""
_ALWAYS_ALLOWED_SIZE = 256 * MIB
"""An archive may unpack to this size, whatever its compression ratio is."""
_CHUNK = 256 * KIB


class ArchiveMember(NamedTuple):
    """One regular file of an archive."""

    name: str
    size: int
    position: int
    """Offset of the content in the uncompressed stream."""


class Readable(Protocol):
    """A stream that can return fewer bytes than asked, as unpackers need."""

    def read1(self, count: int = -1, /) -> bytes: ...


class _Source(Readable, Protocol):
    def read(self, count: int, /) -> bytes: ...


class MemberStream(io.RawIOBase):
    """Stream over the content of one member, ending at its last byte."""

    def __init__(self, stream: Readable, size: int, closing: Callable[[], None]) -> None:
        self._stream, self._left, self._closing = stream, size, closing

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._closing()
        super().close()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read1(min(len(buffer), self._left))
        if not data and self._left:
            raise TruncatedGzip("it ends in the middle")
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


@dataclass
class _Long:
    """Values from extended headers for the next member."""

    name: str = ""
    size: int | None = None


class Archive:
    """A tar archive. Call ``walk`` first; then every member it yielded can be opened any number
    of times.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self._packed = file.read(2) == MAGIC
        self._entrances: list[tuple[int, int]] = [(0, 0)]
        self.refused: list[str] = []
        """Names of members that are not regular files or whose path is not harmless."""

    def walk(self) -> Iterator[tuple[ArchiveMember, io.BufferedReader]]:
        """Yield every file with its content, which need not be read. Raises ``TruncatedGzip`` if
        the archive ends too early, ``SnapshotError`` if it is unsafe to continue.
        """
        packed = self._path.stat().st_size
        with self._path.open("rb") as file:
            inflated = GzipStream(file) if self._packed else None
            if inflated is not None:
                self._entrances = inflated.entrances
            raw = file if inflated is None else io.BufferedReader(inflated, _CHUNK)
            stream = _Counted(raw, packed, str(self._path))
            for number, member in enumerate(self._headers(stream)):
                if number >= MAX_ARCHIVE_FILES:
                    raise SnapshotError(f"{self._path}: more than {MAX_ARCHIVE_FILES} files")
                yield member, _buffered(stream, member.size)
                skip_to = member.position + member.size + -member.size % _BLOCK
                stream.skip(skip_to - stream.position)

    def open(self, member: ArchiveMember) -> BinaryIO:
        """Open a member that ``walk`` yielded. Raises ``TruncatedGzip``; the caller closes it."""
        file = self._path.open("rb")
        if not self._packed:
            file.seek(member.position)
            return _buffered(file, member.size, file.close)
        stream = enter(file, self._entrances, member.position)
        return _buffered(stream, member.size, stream.close)

    def _headers(self, stream: _Counted) -> Iterator[ArchiveMember]:
        extra = _Long()
        while True:
            block = stream.read(_BLOCK)
            if not block.strip(b"\0"):
                return  # the end is two empty blocks; some writers leave them out
            try:
                info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError as error:
                raise TruncatedGzip(f"it is damaged: {error}") from None
            if info.size < 0:
                raise TruncatedGzip("it is damaged: a file of a negative size")
            if info.type in (_PAX, _LONG_NAME):
                _note(extra, info, _extra(stream, info.size, self._path))
                continue
            if info.type == _GLOBAL_PAX:
                _extra(stream, info.size, self._path)
                continue
            name, size = extra.name or info.name, info.size if extra.size is None else extra.size
            extra = _Long()
            if info.type in _REGULAR_TYPES and _harmless(name):
                yield ArchiveMember(name.removeprefix("./"), size, stream.position)
                continue
            if info.type != _FOLDER:
                self.refused.append(name)
                del self.refused[100:]
            stream.skip(size + -size % _BLOCK if info.type in _REGULAR_TYPES else 0)


class _Counted:
    """The uncompressed stream; counts the uncompressed and the compressed bytes that were read."""

    def __init__(self, raw: _Source, packed: int, shown: str) -> None:
        self._raw, self._shown = raw, shown
        self._most = max(packed * MAX_ARCHIVE_RATIO, _ALWAYS_ALLOWED_SIZE)
        self.position = 0

    def read(self, count: int) -> bytes:
        return self._noted(self._raw.read(count))

    def read1(self, count: int = -1, /) -> bytes:
        """Return the bytes that can be read before the end of a truncated file."""
        return self._noted(self._raw.read1(count))

    def _noted(self, data: bytes) -> bytes:
        self.position += len(data)
        if self.position > self._most:
            raise SnapshotError(
                f"{self._shown}: it unpacks to more than {MAX_ARCHIVE_RATIO} times its size"
            )
        return data

    def skip(self, count: int) -> None:
        while count > 0:
            passed = len(self.read(min(count, _CHUNK)))
            if not passed:
                raise TruncatedGzip("it ends in the middle")
            count -= passed


def _buffered(
    stream: Readable, size: int, closing: Callable[[], None] = lambda: None
) -> io.BufferedReader:
    return io.BufferedReader(MemberStream(stream, size, closing), _CHUNK)


def _extra(stream: _Counted, size: int, path: Path) -> bytes:
    if size > _MAX_HEADER_SIZE:
        raise SnapshotError(f"{path}: a header of {size} bytes")
    data = stream.read(size + -size % _BLOCK)[:size]
    if len(data) < size:
        raise TruncatedGzip("it ends in the middle")
    return data


def _note(extra: _Long, info: tarfile.TarInfo, data: bytes) -> None:
    if info.type == _LONG_NAME:
        extra.name = data.rstrip(b"\0").decode(errors="surrogateescape")
        return
    while data:
        length = data[:16].partition(b" ")[0]
        if not length.isdigit() or len(length) > 6 or not 0 < int(length) <= len(data):
            raise TruncatedGzip("it is damaged: a header that cannot be read")
        key, _, value = data[len(length) + 1 : int(length)].removesuffix(b"\n").partition(b"=")
        if key == b"path":
            extra.name = value.decode(errors="surrogateescape")
        elif key == b"size" and value.isdigit() and len(value) < 19:
            extra.size = int(value)
        data = data[int(length) :]


def _harmless(name: str) -> bool:
    return not name.startswith("/") and ".." not in name.split("/") and "\0" not in name
