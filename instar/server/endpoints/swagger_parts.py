"""Parts of the OpenAPI v2 document, compressed: those of this server and of backends.

``openapi.py`` joins them into the document. A part holds JSON text or protobuf, by its encoder.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from instar.base.json_values import Object
from instar.kube.api.discovery import DiscoveryResource
from instar.kube.api.names import GroupVersion
from instar.kube.openapi import v2
from instar.server.aggregation.openapi_documents import Definitions, definition_prefix

if TYPE_CHECKING:
    from instar.server.aggregation.aggregator import Aggregator
    from instar.server.aggregation.openapi_sync import SwaggerPart

log = logging.getLogger(__name__)
_LEVEL = 1
_SLICE = 128 << 10
"""Bytes decompressed at once in the event loop."""


class Packed(NamedTuple):
    """A document compressed in slices, and its uncompressed length."""

    length: int
    slices: tuple[bytes, ...]

    def unpacked(self) -> Iterator[bytes]:
        return map(zlib.decompress, self.slices)


class PackedPart(NamedTuple):
    """A part of the v2 document: its members as JSON text, without separators."""

    paths: Packed
    definitions: Packed

    @property
    def weight(self) -> int:
        return sum(map(len, (*self.paths.slices, *self.definitions.slices)))


class DocumentEncoder(Protocol):
    """Encoding of the v2 document: JSON or protobuf."""

    name: str
    between: bytes

    def paths(self, found: Object) -> bytes: ...

    def definitions(self, found: Object) -> bytes: ...

    def frame(self, paths: int, definitions: int) -> tuple[bytes, bytes, bytes]:
        """The text before, between and after paths and definitions of these sizes."""
        ...


def compressed_part(part: v2.DocumentPart, form: DocumentEncoder) -> PackedPart:
    return PackedPart(
        _compress(form.paths(part.paths)), _compress(form.definitions(part.definitions))
    )


def _compress(data: bytes) -> Packed:
    slices = range(0, len(data), _SLICE)
    return Packed(len(data), tuple(zlib.compress(data[at : at + _SLICE], _LEVEL) for at in slices))


class RemoteSwagger:
    """The parts of the backends, as they are added to those of this server."""

    def __init__(self, aggregator: Aggregator | None) -> None:
        self._aggregator = aggregator

    def parts(self) -> list[SwaggerPart]:
        return [] if self._aggregator is None else self._aggregator.openapi.parts()

    def hidden(self, group: str) -> list[str]:
        """Versions of a group that another server serves."""
        if self._aggregator is None or group not in self._aggregator.table.groups:
            return []
        return sorted(route.version for route in self._aggregator.table.of_group(group))

    def made(
        self,
        parts: Iterable[SwaggerPart],
        builtins: Iterable[DiscoveryResource],
        local: Iterable[GroupVersion],
        form: DocumentEncoder,
    ) -> Iterator[PackedPart]:
        """Yield the parts with names that are free; runs in a thread. ``local`` are the group
        versions of CRDs served here: the names of their definitions are taken."""
        shared = v2.shared_part(builtins)
        reserved = tuple(definition_prefix(*one) for one in local)
        definitions = Definitions(shared.definitions, reserved)
        for each in parts:
            paths = {path: one for path, one in each.part.paths.items() if path not in shared.paths}
            try:
                added = definitions.add(v2.DocumentPart(paths, each.part.definitions))
                yield compressed_part(added, form)
            except Exception as error:  # a document of another server, encoded as protobuf
                log.warning("OpenAPI v2 of a backend is left out: %s", error)
