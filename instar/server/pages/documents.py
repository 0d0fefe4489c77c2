"""Discovery and OpenAPI over HTTP: computed from the catalog, kept until it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import cached_property
from types import ModuleType
from typing import Any

from instar import __version__, offload
from instar.api import discovery
from instar.api.jsontext import encode, encode_pretty
from instar.api.names import GroupVersion
from instar.errors import NotAcceptable
from instar.registry.resources.catalog import Catalog
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
from instar.server.rest.request import Request
from instar.server.rest.responses import (
    JSON_TYPE,
    Response,
    json_response,
    to_protobuf,
    to_yaml,
    typed_response,
)

_AGGREGATED = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_V2_PROTOBUF_TYPE = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_FIXED_PATHS = (
    "/.well-known/openid-configuration",
    "/api",
    "/apis",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/version",
)
SERVER_VERSION = "v1.36.4+instar." + __version__


class Documents:
    """Bytes of every document for one state of the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._state = _State(catalog)
        self._generation = catalog.generation

    async def respond(
        self, request: Request, parts: list[str], others: Iterable[str] = ()
    ) -> Response | None:
        """``parts`` are the path's segments; None when no document is there. ``others`` are paths
        of the server besides those of documents, for the list of all of them."""
        if self._generation != self._catalog.generation:
            self._generation = self._catalog.generation
            self._state = _State(self._catalog, self._state)
        match parts:
            case [] | ["index.html"]:
                return self._paths(others)
            case ["api"]:
                return self._root(request, legacy=True)
            case ["apis"]:
                return self._root(request, legacy=False)
            case ["api", version]:
                return _found(request, discovery.resource_list(self._state.resources, "", version))
            case ["apis", group]:
                return _found(request, discovery.group(self._state.resources, group))
            case ["apis", group, version]:
                return _found(
                    request, discovery.resource_list(self._state.resources, group, version)
                )
            case ["openapi", "v2"]:
                return await self._swagger(request)
            case ["openapi", "v3"]:
                return await self._index()
            case ["openapi", "v3", "api", version]:
                return await self._document(request, GroupVersion("", version))
            case ["openapi", "v3", "apis", group, version]:
                return await self._document(request, GroupVersion(group, version))
        return None

    def _paths(self, others: Iterable[str]) -> Response:
        found = {*_FIXED_PATHS, *others}
        for group, version in _v3().group_versions(self._state.resources):
            home = f"/apis/{group}" if group else "/api"
            found |= {home, f"{home}/{version}"}
        body = encode_pretty({"paths": sorted(found)})
        return Response(200, (body,), [JSON_TYPE])

    def _root(self, request: Request, *, legacy: bool) -> Response:
        aggregated = _aggregated_media(request.header(b"accept"))
        if not aggregated:
            if legacy:
                return _document(request, discovery.legacy_versions(request.header(b"host")))
            return _document(request, discovery.group_list(self._state.resources))
        body = self._state.aggregated_core if legacy else self._state.aggregated
        tag = f'"{discovery.etag(body).strip(chr(34))}"'.encode()
        headers = [
            (b"content-type", f"{aggregated}{_AGGREGATED}".encode()),
            (b"etag", tag),
            (b"vary", b"Accept"),
            (b"cache-control", b"public"),
        ]
        if request.headers.get(b"if-none-match") == tag:
            return Response(304, (), headers)
        return Response(200, (_in_media(body, aggregated),), headers)

    async def _swagger(self, request: Request) -> Response:
        state = self._state
        if _V2_PROTOBUF in request.header(b"accept"):
            body = await state.built("v2.pb", lambda: _protobuf(state.swagger))
            return Response(200, (body,), [(b"content-type", _V2_PROTOBUF_TYPE)])
        body = await state.built("v2", lambda: encode(state.swagger))
        return Response(200, (body,), [JSON_TYPE])

    async def _index(self) -> Response:
        state, v3 = self._state, _v3()
        hashes = {
            version: v3.content_hash(await state.v3_document(version))
            for version in v3.group_versions(state.resources)
        }
        return json_response(200, v3.index(hashes))

    async def _document(self, request: Request, version: GroupVersion) -> Response | None:
        v3 = _v3()
        if version not in v3.group_versions(self._state.resources):
            return None
        body = await self._state.v3_document(version)
        headers = [JSON_TYPE, (b"etag", f'"{v3.content_hash(body)}"'.encode())]
        if request.one("hash"):
            headers.append((b"cache-control", b"public, immutable"))
        return Response(200, (body,), headers)


class _State:
    """What is computed at most once per catalog state; the heavy parts in a thread."""

    def __init__(self, catalog: Catalog, before: _State | None = None) -> None:
        """Documents of ``before`` that no CRD is part of are good for this one, too."""
        self._catalog = catalog
        self._built: dict[object, asyncio.Task[bytes]] = {}
        if before is not None:
            changing = before.custom_groups | self.custom_groups
            self._built = {
                key: task
                for key, task in before._built.items()
                if isinstance(key, GroupVersion) and key.group not in changing
            }

    @cached_property
    def custom_groups(self) -> set[str]:
        return {item.crd.group for item in self.resources if not item.builtin}

    @cached_property
    def resources(self) -> list[discovery.Resource]:
        return [
            discovery.Resource(item.crd, item.serving.builtin, item.serving.verbs)
            for item in self._catalog.resources()
        ]

    @cached_property
    def aggregated(self) -> bytes:
        return encode(discovery.aggregated(self.resources, legacy=False))

    @cached_property
    def aggregated_core(self) -> bytes:
        return encode(discovery.aggregated(self.resources, legacy=True))

    @cached_property
    def swagger(self) -> dict[str, Any]:
        # Only here: clients of today ask for v3.
        from instar.openapi import v2

        return v2.document(self.resources, server_version=SERVER_VERSION)

    async def v3_document(self, version: GroupVersion) -> bytes:
        return await self.built(
            version, lambda: encode(_v3().document(self.resources, version.group, version.version))
        )

    async def built(self, key: object, make: Callable[[], bytes]) -> bytes:
        """Made once, however many ask for it after a change; a client that leaves stops nothing."""
        found = self._built.get(key)
        if found is None or (found.done() and (found.cancelled() or found.exception())):
            found = asyncio.create_task(offload.apart(make))
            self._built[key] = found
        return await asyncio.shield(found)


def _v3() -> ModuleType:
    # Only here: servers of tests and operators are seldom asked what their types are.
    from instar.openapi import v3

    return v3


def _protobuf(document: dict[str, Any]) -> bytes:
    # Only here: of those that ask for v2, most take JSON.
    from instar.openapi import v2_protobuf

    return v2_protobuf.encode(document)


def _in_media(document: bytes, media: str) -> bytes:
    if media == JSON:
        return document
    return to_protobuf(document) if media == PROTOBUF else to_yaml(document)


def _found(request: Request, document: dict[str, Any] | None) -> Response | None:
    return None if document is None else _document(request, document)


def _document(request: Request, document: dict[str, Any]) -> Response:
    form = response_form(request, Offer.BUILTIN)
    if form.transform:
        raise NotAcceptable(f"only the following media types are accepted: {ACCEPTED}")
    return typed_response(200, document, form)


def _aggregated_media(accept: str) -> str:
    """The media type where the first clause that can be met asks for the aggregated form; empty
    where it asks for the plain one. Raises ``NotAcceptable`` when no clause can be met."""
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
