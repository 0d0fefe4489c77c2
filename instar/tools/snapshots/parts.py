"""Parts of a snapshot: streams of JSON lines, read one line at a time.

``captured_cluster.py`` reads objects from them. A line that is too long or not an object is
counted and skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.limits import KIB, MAX_LINE
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.inflate import TruncatedGzip

_CHUNK = 256 * KIB


class PartStream(Protocol):
    def read1(self, count: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class Digest:
    """Counts and hash of a part as it was read."""

    lines: int
    size: int
    sha256: str
    whole: bool = True
    """False if the part is truncated."""


@dataclass
class SnapshotPart:
    """A part of a snapshot, opened when it is read."""

    name: str
    open: Callable[[], BinaryIO]
    count: int
    """Number of lines, readable or not."""
    bad: int = 0
    """Number of lines that were not objects, in the last reading."""
    trouble: str = ""
    """Why reading ended early."""
    missing: int = field(default=0)
    """Number of lines that the manifest lists and the part does not have."""

    def objects(self) -> Iterator[Object]:
        self.bad, self.trouble = 0, ""
        try:
            with self.open() as stream:
                for line in lines(stream):
                    obj = parse_line(line)
                    if obj is None:
                        self.bad += 1
                    else:
                        yield obj
        except (TruncatedGzip, OSError) as error:
            self.trouble = str(error)


def lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield every non-empty line. A line that is too long is yielded as an empty value, which
    readers do not accept as an object.
    """
    while line := stream.readline(MAX_LINE):
        if len(line) == MAX_LINE and not line.endswith(b"\n"):
            while (rest := stream.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass
            yield b""
        elif not line.isspace():
            yield line


def parse_line(line: bytes) -> Object | None:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def digest(stream: PartStream) -> Digest:
    """Read the whole stream and return its digest."""
    hashed, size, count, last = sha256(), 0, 0, b"\n"
    whole = True
    try:
        while data := stream.read1(_CHUNK):
            hashed.update(data)
            size += len(data)
            count += data.count(b"\n")
            last = data[-1:]
    except TruncatedGzip:
        whole = False
    # the bytes after the last newline are a line too, unless the part is truncated
    count += whole and last != b"\n"
    return Digest(count, size, hashed.hexdigest(), whole)


def part_of_file(name: str, path: Path, count: int) -> SnapshotPart:
    return SnapshotPart(name, lambda: path.open("rb"), count)


def small_document(stream: BinaryIO, shown: str) -> object:
    """Return the one JSON document of a part, which must be small."""
    data = stream.read(MAX_LINE + 1)
    if len(data) > MAX_LINE:
        raise SnapshotError(f"{shown}: it is larger than {MAX_LINE} bytes")
    try:
        found: object = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise SnapshotError(f"{shown}: not JSON: {error}") from None
    return found
