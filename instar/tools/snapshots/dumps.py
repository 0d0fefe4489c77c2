"""Reads objects from YAML or JSON text of any size: files, ``kubectl get -o``, JSON lines.

``sources.py`` calls it. A small text is parsed as a whole. A large text is first cut into list
members by its lines, because kubectl writes each member at a fixed indentation; so the whole text
is never in memory. Skipped parts are reported.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO

from instar.base.json_values import Object
from instar.base.limits import MAX_LINE
from instar.base.plurals import counted
from instar.kube.api.encoding.manifests import UnreadableManifest, documents, list_items
from instar.tools.snapshots.parts import parse_line

Say = Callable[[str], None]

_ITEM = b"        {"
_ITEM_ENDS = (b"        }", b"        },")
_BOUNDARIES = (b"---", b"...")


def objects_in(stream: BinaryIO, file: str, say: Say) -> Iterator[Object]:
    """Yield every object, members of lists included, with ``apiVersion`` and ``kind``."""
    head = stream.read(MAX_LINE + 1)
    small = len(head) <= MAX_LINE
    whole = io.BufferedReader(_Joined(head, stream), 1 << 20)
    if _is_lines(head):
        pieces = _lines(whole)
    elif small:
        yield from _small(head, file, say)
        return
    elif head.lstrip()[:1] in (b"{", b"["):
        pieces = _json_pieces(whole, file, say)
    else:
        pieces = _yaml_pieces(whole, file, say)
    for piece in pieces:
        found = parse_line(piece)
        if found is not None:
            yield from members(found)
        else:
            yield from _small(piece, file, say)


def _is_lines(head: bytes) -> bool:
    """Return whether each line is a separate document."""
    first, _, rest = head.lstrip().partition(b"\n")
    return first[:1] == b"{" and bool(rest.strip()) and parse_line(first) is not None


def _small(data: bytes, file: str, say: Say) -> Iterator[Object]:
    try:
        for document in documents(data.decode(), file):
            if isinstance(document.value, dict):
                yield from members(document.value)
            else:
                say(f"{file}: a document is no object")
    except UnicodeDecodeError:
        say(f"{file}: not a text file")
    except UnreadableManifest as error:
        say(str(error))


def members(value: Object) -> Iterator[Object]:
    """Yield the members of a list, with the apiVersion and kind that a typed list implies
    for them.
    """
    items = list_items(value)
    if items is None:
        yield value
        return
    head = {"apiVersion": value.get("apiVersion"), "kind": str(value["kind"]).removesuffix("List")}
    for item in items:
        if isinstance(item, dict):
            yield from members(item if "kind" in item or not head["kind"] else {**head, **item})


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline(MAX_LINE):
        if not line.isspace():
            yield line


def _json_pieces(stream: BinaryIO, file: str, say: Say) -> Iterator[bytes]:
    """Split kubectl's JSON list at the lines that contain only a member's opening or
    closing brace.
    """
    piece: list[bytes] = []
    size = found = dropped = 0
    inside = False
    while line := stream.readline(MAX_LINE):
        bare = line.rstrip()
        if bare == _ITEM:
            piece, size, inside = [], 0, True
        if not inside:
            continue
        size += len(line)
        if size <= MAX_LINE:
            piece.append(line)
        if bare in _ITEM_ENDS:
            inside = False
            found += 1
            if size > MAX_LINE:
                dropped += 1
            else:
                yield b"".join(piece).strip().removesuffix(b",")
    _say_dropped(dropped, file, say)
    if not found:
        say(
            f"{file}: too large for one document and not written as kubectl writes lists; "
            "make lines of it: jq -c '.items[]'"
        )


def _say_dropped(dropped: int, file: str, say: Say) -> None:
    if dropped:
        say(f"{file}: {counted(dropped, 'document')} larger than {MAX_LINE} bytes, left out")


def _yaml_pieces(stream: BinaryIO, file: str, say: Say) -> Iterator[bytes]:
    """Split YAML into documents, and into members of a list that starts in the first column."""
    piece: list[bytes] = []
    size, dropped, inside = 0, 0, False
    while line := stream.readline(MAX_LINE):
        boundary = line.rstrip()[:3] in _BOUNDARIES
        begins = inside and line.startswith(b"- ")
        ends = inside and not line[:1].isspace() and not begins
        if boundary or begins or ends:
            if size > MAX_LINE:
                dropped += 1
            elif piece:
                yield b"".join(piece)
            piece, size, inside = [], 0, inside and begins
        if line.rstrip() == b"items:":
            # everything before it is the head of the list
            piece, size, inside = [], 0, True
            continue
        if boundary:
            continue
        if size <= MAX_LINE:
            piece.append(b"  " + line[2:] if begins else line)
        size += len(line)
    if piece and size <= MAX_LINE and not _is_tail(piece):
        yield b"".join(piece)
    _say_dropped(dropped, file, say)


def _is_tail(piece: list[bytes]) -> bool:
    """Return whether the piece is the list metadata that follows the members."""
    return piece[0].startswith(b"kind: List")


class _Joined(io.RawIOBase):
    """Stream of bytes that were already read, followed by the rest of the stream."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = bytes(self._head[: len(buffer)]) or self._rest.read(len(buffer))
        self._head = self._head[len(data) :]
        buffer[: len(data)] = data
        return len(data)
