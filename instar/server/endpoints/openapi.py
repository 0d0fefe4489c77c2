"""OpenAPI documents: v3 per group version, v2 assembled from one part per resource.

``documents.py`` calls it when a document is requested. Documents are as large as all CRDs together,
so caches are limited by size, parts of v2 are kept compressed, and v2 is assembled while it is
sent. A cached part is valid until its CRD changes. No HTTP here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from hashlib import sha512
from itertools import islice

import orjson

from instar.base import limits, offload
from instar.base.json_values import Object
from instar.base.single_flight import SingleFlight
from instar.base.weighted_lru import WeightedLru
from instar.kube.api.encoding.json_text import encode
from instar.kube.api.names import GroupVersion
from instar.kube.openapi import v2, v3
from instar.kube.openapi.protobuf import v2_document, v3_document
from instar.server.aggregation.openapi_documents import without_versions
from instar.server.endpoints.groups import SERVER_VERSION, GroupMember, GroupPart, Groups
from instar.server.endpoints.swagger_parts import (
    DocumentEncoder,
    Packed,
    PackedPart,
    RemoteSwagger,
    compressed_part,
)

_LATELY_SECONDS = 60.0
_AT_ONCE = 8
"""Parts made in one call to a thread."""


class _Json:
    name, between = "json", b","

    def paths(self, found: Object) -> bytes:
        return encode(found)[1:-1]

    definitions = paths

    def frame(self, paths: int, definitions: int) -> tuple[bytes, bytes, bytes]:
        opening = encode(v2.frame(SERVER_VERSION))[:-1] + b',"paths":{'
        return opening, b'},"definitions":{', b"}}"


class _Protobuf:
    name, between = "protobuf", b""

    def paths(self, found: Object) -> bytes:
        return v2_document.encode_paths(found)

    def definitions(self, found: Object) -> bytes:
        return v2_document.encode_definitions(found)

    def frame(self, paths: int, definitions: int) -> tuple[bytes, bytes, bytes]:
        return *v2_document.frame(v2.frame(SERVER_VERSION), paths, definitions), b""


JSON: DocumentEncoder = _Json()
PROTOBUF: DocumentEncoder = _Protobuf()


class Swagger:
    """The v2 document of one state of the catalog."""

    def __init__(self, parts: Sequence[PackedPart], form: DocumentEncoder, digest: str) -> None:
        self._paths = [part.paths for part in parts if part.paths.length]
        self._definitions = [part.definitions for part in parts if part.definitions.length]
        self._between = form.between
        paths, definitions = self._size(self._paths), self._size(self._definitions)
        self._frame = form.frame(paths, definitions)
        self.length = sum(map(len, self._frame)) + paths + definitions
        self.digest = digest

    def _size(self, packed: list[Packed]) -> int:
        between = len(self._between) * max(0, len(packed) - 1)
        return sum(each.length for each in packed) + between

    def chunks(self) -> Iterator[bytes]:
        opening, middle, closing = self._frame
        yield opening
        yield from self._joined(self._paths)
        yield middle
        yield from self._joined(self._definitions)
        yield closing

    def _joined(self, packed: list[Packed]) -> Iterator[bytes]:
        for position, each in enumerate(packed):
            if position:
                yield self._between
            yield from each.unpacked()


def v3_as_protobuf(document: bytes) -> bytes:
    """Encode the text of a v3 document as protobuf."""
    return v3_document.encode(orjson.loads(document))


class OpenApi:
    """OpenAPI documents, with a cache limited by size."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._documents: WeightedLru[GroupVersion, tuple[str, bytes]] = WeightedLru(
            limits.OPENAPI_DOCUMENTS
        )
        self._parts: WeightedLru[tuple[str, str], tuple[bytes, PackedPart]] = WeightedLru(
            limits.OPENAPI_PARTS
        )
        self._of_builtins: dict[str, PackedPart] = {}
        self._recent_swagger: dict[str, tuple[Hashable, Swagger]] = {}
        self._making = SingleFlight()
        self._remote = RemoteSwagger(groups.aggregator)

    async def document(self, part: GroupPart, version: GroupVersion) -> tuple[str, bytes] | None:
        """Hash and text of a v3 document; None where there is none."""
        if version not in part.versions:
            return None
        if "published" not in part.__dict__:
            await offload.run_in_thread(lambda: part.published)
        digest = part.published[version]
        kept = self._documents.get(version)
        if kept is not None and kept[0] == digest:
            return kept

        async def make() -> tuple[str, bytes]:
            made = await offload.run_in_thread(
                lambda: encode(v3.document(part.resources, version.group, version.version))
            )
            return self._documents.put(version, (digest, made), len(made))

        return await self._making.once((version, digest), make)

    async def swagger(self, form: DocumentEncoder, state: Hashable) -> Swagger:
        """``state`` identifies the catalog's state, so that no request gets an older document."""
        kept = self._recent_swagger.get(form.name)
        if kept is not None and kept[0] == state:
            return kept[1]
        return await self._making.once(
            (form.name, state), lambda: self._make_and_cache(form, state)
        )

    async def _make_and_cache(self, form: DocumentEncoder, state: Hashable) -> Swagger:
        """Make the document and cache it for a short time: a client may give up and retry before it
        is done, and there may be more parts than the cache holds."""
        made = await self._make_swagger(form)
        mine = self._recent_swagger[form.name] = (state, made)

        def forget() -> None:
            if self._recent_swagger.get(form.name) is mine:
                del self._recent_swagger[form.name]

        asyncio.get_running_loop().call_later(_LATELY_SECONDS, forget)
        return made

    async def _make_swagger(self, form: DocumentEncoder) -> Swagger:
        parts = self._groups.all()
        members = [member for part in parts for member in part.members]
        shared = self._of_builtins.get(form.name)
        if shared is None:
            builtins = [one.resource for one in members if one.resource.builtin]
            shared = await offload.run_in_thread(
                lambda: compressed_part(v2.shared_part(builtins), form)
            )
            self._of_builtins[form.name] = shared
        found, digest = [shared], sha512(SERVER_VERSION.encode())
        rest = iter(_custom(members))
        while some := list(islice(rest, _AT_ONCE)):
            for said, made in await offload.run_in_thread(partial(self._make_parts, some, form)):
                digest.update(said)
                found.append(made)
        remote = self._remote.parts()
        if remote:
            digest.update(b"".join(part.digest for part in remote))
            builtins = [one.resource for one in members if one.resource.builtin]
            local = [
                version
                for part in parts
                for version in part.versions
                if version.version not in part.remote
            ]
            found += await offload.run_in_thread(
                lambda: list(self._remote.made(remote, builtins, local, form))
            )
        return Swagger(found, form, digest.hexdigest().upper())

    def _make_parts(
        self, members: list[GroupMember], form: DocumentEncoder
    ) -> list[tuple[bytes, PackedPart]]:
        """Make parts; runs in a thread."""
        found = []
        for member in members:
            hidden = self._remote.hidden(member.resource.crd.group)
            key, digest = (member.resource.crd.name, form.name), member.digest()
            digest += ",".join(hidden).encode()
            kept = self._parts.get(key)
            if kept is None or kept[0] != digest:
                own = v2.custom_part(member.resource)
                own = without_versions(own, member.resource.crd.group, hidden) if hidden else own
                made = compressed_part(own, form)
                kept = self._parts.put(key, (digest, made), made.weight)
            found.append(kept)
        return found


def _custom(members: list[GroupMember]) -> list[GroupMember]:
    """Members with schemas, in order, without those hidden by a built-in kind."""
    taken = {
        (one.resource.crd.group, one.resource.crd.names.plural)
        for one in members
        if one.resource.builtin
    }
    found = {
        (one.resource.crd.group, one.resource.crd.names.plural): one
        for one in members
        if one.resource.established and not one.resource.builtin
    }
    return [found[place] for place in sorted(found) if place not in taken]
