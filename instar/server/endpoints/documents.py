"""Discovery and OpenAPI endpoints, assembled from one part per API group.

``server/app.py`` calls it for paths that are not resources. A whole document is cached until the
catalog changes, the parts of a document for longer (``groups.py``, ``openapi.py``). Large documents
are made in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from operator import itemgetter
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from instar.base import offload
from instar.base.errors import NotAcceptable
from instar.base.single_flight import SingleFlight
from instar.kube.api import discovery
from instar.kube.api.encoding.json_text import encode, encode_pretty
from instar.kube.api.names import GroupVersion
from instar.server.endpoints.groups import GroupPart, Groups, Piece
from instar.server.endpoints.merged_group import MergedGroupPart
from instar.server.endpoints.metrics import METRICS_PATHS
from instar.server.http.messages import JSON_TYPE, Header, Request, Response
from instar.server.registry.resources.catalog import Catalog
from instar.server.rest.negotiate import (
    ACCEPTED,
    JSON,
    PROTOBUF,
    YAML,
    Offer,
    clauses,
    response_form,
    unacceptable,
)
from instar.server.rest.responses import encoded_response, to_protobuf, to_yaml

if TYPE_CHECKING:
    from instar.server.aggregation.aggregator import Aggregator
    from instar.server.endpoints.openapi import OpenApi

T = TypeVar("T")
_AGGREGATED = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_AGGREGATED_OPENING = (
    b'{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":['
)
_LISTED_OPENING = b'{"kind":"APIGroupList","apiVersion":"v1","groups":['
_CLOSING = b"]}"
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_V2_PROTOBUF_TYPE = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V3_PROTOBUF = (
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
)
_OF_ONE = 400
"""Approximate size of one resource in a discovery document, in bytes."""
_FIXED_PATHS = (
    "/.well-known/openid-configuration",
    "/api",
    "/apis",
    *METRICS_PATHS,
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/version",
)


class Documents:
    """Serves discovery and OpenAPI documents."""

    def __init__(self, catalog: Catalog, aggregator: Aggregator | None = None) -> None:
        self._catalog = catalog
        self._groups = Groups(catalog, aggregator, MergedGroupPart)
        self._wholes = _CatalogDocuments(catalog, self._groups)
        self._openapi: OpenApi | None = None

    async def respond(
        self, request: Request, parts: list[str], others: Iterable[str] = ()
    ) -> Response | None:
        """``parts`` are the segments of the path; None if the path has no document. ``others`` are
        further paths of the server, for the list of all paths."""
        match parts:
            case [] | ["index.html"]:
                return await self._paths(others)
            case ["api"]:
                legacy = self._catalog.is_builtin_group("")
                return await self._root(request, legacy=True) if legacy else None
            case ["apis"]:
                return await self._root(request, legacy=False)
            case ["api", version]:
                return await self._resources(request, GroupVersion("", version))
            case ["apis", group]:
                return await self._group(request, group)
            case ["apis", group, version]:
                return await self._resources(request, GroupVersion(group, version))
            case ["openapi", "v2"]:
                return await self._swagger(request)
            case ["openapi", "v3"]:
                return Response(200, (await self._wholes.get("v3", _index),), [JSON_TYPE])
            case ["openapi", "v3", "api", version]:
                return await self._document(request, GroupVersion("", version))
            case ["openapi", "v3", "apis", group, version]:
                return await self._document(request, GroupVersion(group, version))
        return None

    async def _paths(self, others: Iterable[str]) -> Response:
        besides = tuple(others)
        body = await self._wholes.get(("paths", besides), lambda parts: _all_paths(parts, besides))
        return Response(200, (body,), [JSON_TYPE])

    async def _root(self, request: Request, *, legacy: bool) -> Response:
        media = _aggregated_media(request.header(b"accept"))
        if not media:
            if legacy:
                versions = discovery.legacy_versions(request.header(b"host"))
                return await _document(request, encode(versions))
            return await _document(request, await self._wholes.get("listed", _group_list))
        tag, body = await self._wholes.get(
            ("aggregated", legacy, media), lambda parts: _aggregated_discovery(parts, legacy, media)
        )
        headers = [
            (b"content-type", f"{media}{_AGGREGATED}".encode()),
            (b"etag", tag),
            (b"vary", b"Accept"),
            (b"cache-control", b"public"),
        ]
        return _unless_etag_matches(request, tag, (body,), headers, len(body))

    async def _group(self, request: Request, name: str) -> Response | None:
        part = self._groups.part(name)
        if part is None:
            return None
        body = await offload.run(_OF_ONE * len(part.members), part.document)
        return None if body is None else await _document(request, body)

    async def _resources(self, request: Request, version: GroupVersion) -> Response | None:
        part = self._groups.part(version.group)
        if part is None:
            return None
        size = _OF_ONE * len(part.members)
        body = await offload.run(size, lambda: part.resource_list(version.version))
        return None if body is None else await _document(request, body)

    async def _swagger(self, request: Request) -> Response:
        openapi, made = _openapi(), self._documents_of_types()
        binary = _V2_PROTOBUF in request.header(b"accept")
        form = openapi.PROTOBUF if binary else openapi.JSON
        found = await made.swagger(form, self._catalog.generation)
        tag = f'"{found.digest}"'.encode()
        kind = (b"content-type", _V2_PROTOBUF_TYPE) if binary else JSON_TYPE
        headers = [kind, (b"etag", tag), (b"vary", b"Accept")]
        return _unless_etag_matches(request, tag, found.chunks(), headers, found.length)

    async def _document(self, request: Request, version: GroupVersion) -> Response | None:
        part = self._groups.part(version.group)
        found = await self._documents_of_types().document(part, version) if part else None
        if found is None:
            return None
        digest, body = found
        kind = JSON_TYPE
        if _wants_v3_protobuf(request.header(b"accept")):
            kind = (b"content-type", _V3_PROTOBUF[0].encode())
            text = body
            body = await offload.run(len(text), lambda: _openapi().v3_as_protobuf(text))
        headers = [kind, (b"etag", f'"{digest}"'.encode()), (b"vary", b"Accept")]
        if request.one("hash"):
            headers.append((b"cache-control", b"public, immutable"))
        return Response(200, (body,), headers)

    def _documents_of_types(self) -> OpenApi:
        if self._openapi is None:
            self._openapi = _openapi().OpenApi(self._groups)
        return self._openapi


class _CatalogDocuments:
    """Documents about all groups, for one state of the catalog."""

    def __init__(self, catalog: Catalog, groups: Groups) -> None:
        self._catalog, self._groups = catalog, groups
        self._state = catalog.generation
        self._made: dict[Hashable, object] = {}
        self._making = SingleFlight()

    async def get(self, key: Hashable, make: Callable[[list[GroupPart]], T]) -> T:
        if self._state != self._catalog.generation:
            self._state = self._catalog.generation
            self._made.clear()
        state = self._state
        if key not in self._made:
            made = await self._making.once((state, key), lambda: self._make(make))
            if state != self._state:
                return made
            self._made[key] = made
        found: T = self._made[key]  # type: ignore[assignment]
        return found

    async def _make(self, make: Callable[[list[GroupPart]], T]) -> T:
        parts = self._groups.all()
        size = _OF_ONE * sum(len(part.members) for part in parts)
        return await offload.run(size, lambda: make(parts))


def _wants_v3_protobuf(accept: str) -> bool:
    """Return whether a client names protobuf, before JSON if it names both."""
    places = [place for media in _V3_PROTOBUF if (place := accept.find(media)) >= 0]
    json_place = accept.find("application/json")
    return bool(places) and (json_place < 0 or min(places) < json_place)


def _openapi() -> ModuleType:
    # Imported here: few clients request OpenAPI.
    from instar.server.endpoints import openapi

    return openapi


def _all_paths(parts: Iterable[GroupPart], others: Iterable[str]) -> bytes:
    found = {*_FIXED_PATHS, *others}
    for part in parts:
        for group, version in part.shown:
            home = f"/apis/{group}" if group else "/api"
            found |= {home, f"{home}/{version}"}
    return encode_pretty({"paths": sorted(found)})


def _group_list(parts: Iterable[GroupPart]) -> bytes:
    return _join_pieces(_LISTED_OPENING, (part.listed for part in parts))


def _aggregated_discovery(
    parts: Iterable[GroupPart], legacy: bool, media: str
) -> tuple[bytes, bytes]:
    """Return the ETag, which is the same for every media type, and the document."""
    chosen = (part.aggregated for part in parts if (part.name == "") is legacy)
    document = _join_pieces(_AGGREGATED_OPENING, chosen)
    return discovery.etag(document).encode(), _in_media(document, media)


def _join_pieces(opening: bytes, pieces: Iterable[Piece | None]) -> bytes:
    found = sorted((piece for piece in pieces if piece is not None), key=itemgetter(0))
    return opening + b",".join(body for _, body in found) + _CLOSING


def _index(parts: Iterable[GroupPart]) -> bytes:
    hashes = {version: said for part in parts for version, said in part.index().items()}
    return encode(_openapi().v3.index(hashes)) + b"\n"


def _unless_etag_matches(
    request: Request, tag: bytes, chunks: Iterable[bytes], headers: list[Header], length: int
) -> Response:
    if request.headers.get(b"if-none-match") == tag:
        return Response(304, (), headers)
    return Response(200, chunks, headers, length=length)


def _in_media(document: bytes, media: str) -> bytes:
    if media == JSON:
        return document
    return to_protobuf(document) if media == PROTOBUF else to_yaml(document)


async def _document(request: Request, document: bytes) -> Response:
    form = response_form(request, Offer.DOCUMENT)
    if form.transform:
        raise NotAcceptable(f"only the following media types are accepted: {ACCEPTED}")
    if form.media == JSON and not form.pretty:
        return encoded_response(200, document, form)
    return await offload.run(len(document), lambda: encoded_response(200, document, form))


def _aggregated_media(accept: str) -> str:
    """The media type if the first acceptable clause is aggregated discovery; empty if it is the
    plain form. Raises ``NotAcceptable`` if no clause is acceptable."""
    for clause in clauses(accept):
        if clause.media not in (JSON, YAML, PROTOBUF, "*/*", "application/*"):
            continue
        if not clause.get("as"):
            return ""
        if clause.get("as") == "APIGroupDiscoveryList" and clause.get("v") == "v2":
            return clause.media if clause.media in (YAML, PROTOBUF) else JSON
    if not accept:
        return ""
    known = any(clause.get("as") for clause in clauses(accept))
    raise unacceptable(accept, Offer.CUSTOM if known else Offer.BUILTIN)
