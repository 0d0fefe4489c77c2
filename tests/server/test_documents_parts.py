"""Documents about everything are put together of parts, and a CRD's change costs its own part."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from instar.base import limits
from instar.base.json_values import Object
from instar.kube.openapi import v2, v3
from instar.kube.openapi.protobuf import v2_document
from instar.server.endpoints import groups as groups_page
from instar.server.endpoints.groups import SERVER_VERSION
from instar.server.lifecycle.embedded import Embedded, embedded
from tests.support import crds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MERGE = "application/merge-patch+json"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def _crd(number: int) -> Object:
    schema = crds.fields(spec=crds.fields(size={"type": "integer", "description": "äöü <&>"}))
    versions = [crds.version("v1", schema, subresources={"status": {}}), crds.version("v1beta1")]
    return crds.crd(*versions, group=f"g{number % 3}.example.com", plural=f"things{number}",
                    kind=f"Thing{number}")  # fmt: skip


async def _filled(server: Embedded, count: int = 6) -> None:
    for number in range(count):
        assert (await server.ask("POST", CRDS, _crd(number))).status == 201


async def _get(server: Embedded, path: str, accept: str = "application/json", **more: str) -> Any:
    headers = {b"accept": accept.encode(), **{k.encode(): v.encode() for k, v in more.items()}}
    return await server.exchange("GET", path, {}, headers)


def _in_server(act: Callable[[Embedded], Any]) -> Any:
    async def run() -> Any:
        async with embedded() as server:
            await _filled(server)
            return await act(server)

    return asyncio.run(run())


def _resources(server: Embedded) -> list[Any]:
    page = groups_page.Groups(server._machinery.catalog)
    return [resource for part in page.all() for resource in part.resources]


def test_the_parts_of_v2_say_what_the_whole_document_says() -> None:
    async def act(server: Embedded) -> None:
        answer = await _get(server, "/openapi/v2")
        packed = await _get(server, "/openapi/v2", _PROTOBUF)

        document = v2.document(_resources(server), server_version=SERVER_VERSION)

        assert orjson.loads(answer.body) == json.loads(json.dumps(document))
        whole = v2_document.encode(document)
        assert len(packed.body) == len(whole)
        assert sorted(packed.body) == sorted(whole)

    _in_server(act)


def test_a_v3_document_has_the_hash_that_the_index_names_and_is_what_its_group_says() -> None:
    async def act(server: Embedded) -> None:
        index = orjson.loads((await _get(server, "/openapi/v3")).body)["paths"]
        answer = await _get(server, "/openapi/v3/apis/g1.example.com/v1")

        link = index["apis/g1.example.com/v1"]["serverRelativeURL"]
        assert answer.headers[b"etag"].strip(b'"').decode() == link.partition("?hash=")[2]
        expected = v3.document(_resources(server), "g1.example.com", "v1")
        assert orjson.loads(answer.body) == json.loads(json.dumps(expected))
        assert {"apis/apps/v1", "api/v1"} <= set(index)

    _in_server(act)


def test_a_hash_changes_with_the_spec_and_only_that_of_its_group() -> None:
    async def act(server: Embedded) -> None:
        async def hashes() -> dict[str, str]:
            paths = orjson.loads((await _get(server, "/openapi/v3")).body)["paths"]
            return {path: each["serverRelativeURL"] for path, each in paths.items()}

        first = await hashes()
        path = f"{CRDS}/things1.g1.example.com"
        note: Object = {"metadata": {"annotations": {"a": "b"}}}
        await server.ask("PATCH", path, note, content_type=_MERGE)
        noted = await hashes()
        names: Object = {"spec": {"names": {"categories": ["all"]}}}
        await server.ask("PATCH", path, names, content_type=_MERGE)
        changed = await hashes()

        assert noted == first
        differing = {path for path in first if first[path] != changed[path]}
        assert differing == {"apis/g1.example.com/v1", "apis/g1.example.com/v1beta1"}

    _in_server(act)


def test_a_crd_write_rebuilds_only_its_own_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    custom_part, part_of = v2.custom_part, groups_page.GroupPart.__init__

    def counted_part(resource: Any) -> v2.DocumentPart:
        made.append(resource.crd.name)
        return custom_part(resource)

    def counted_group(part: Any, name: str, members: Any) -> None:
        made.append(name)
        part_of(part, name, members)

    async def act(server: Embedded) -> None:
        async def everything() -> None:
            for path in ("/apis", "/openapi/v2", "/openapi/v3"):
                await _get(server, path)
            await _get(server, "/apis", _AGGREGATED)

        await everything()
        monkeypatch.setattr(v2, "custom_part", counted_part)
        monkeypatch.setattr(groups_page.GroupPart, "__init__", counted_group)
        names: Object = {"spec": {"names": {"categories": ["all"]}}}
        path = f"{CRDS}/things1.g1.example.com"
        await server.ask("PATCH", path, names, content_type=_MERGE)
        await everything()
        await everything()

    _in_server(act)

    assert sorted(made) == ["g1.example.com", "things1.g1.example.com"]


def test_a_v3_document_is_made_once_until_its_group_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []
    document = v3.document

    def counted(resources: Any, group: str, version: str) -> Object | None:
        made.append(f"{group}/{version}")
        return document(resources, group, version)

    async def act(server: Embedded) -> None:
        monkeypatch.setattr(v3, "document", counted)
        path = "/openapi/v3/apis/g1.example.com/v1"
        await asyncio.gather(*(_get(server, path) for _ in range(3)))
        other: Object = {"spec": {"names": {"categories": ["all"]}}}
        for name in ("things2.g2.example.com", "things1.g1.example.com"):
            await server.ask("PATCH", f"{CRDS}/{name}", other, content_type=_MERGE)
            await _get(server, path)
            await _get(server, "/openapi/v3")

    _in_server(act)

    assert made == ["g1.example.com/v1"] * 2


def test_a_v2_document_larger_than_the_cache_is_built_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []
    custom_part = v2.custom_part

    def counted(resource: Any) -> v2.DocumentPart:
        made.append(resource.crd.name)
        return custom_part(resource)

    monkeypatch.setattr(v2, "custom_part", counted)
    monkeypatch.setattr(limits, "OPENAPI_PARTS", 1)

    async def act(server: Embedded) -> None:
        first = await _get(server, "/openapi/v2")
        assert (await _get(server, "/openapi/v2")).body == first.body

    _in_server(act)

    assert len(made) == 6


def test_a_client_with_the_current_v2_document_gets_304() -> None:
    async def act(server: Embedded) -> None:
        first = await _get(server, "/openapi/v2")
        tag = first.headers[b"etag"].decode()

        again = await _get(server, "/openapi/v2", **{"if-none-match": tag})

        assert (again.status, again.body) == (304, b"")

    _in_server(act)


def test_a_deleted_crd_is_in_no_document() -> None:
    async def act(server: Embedded) -> None:
        for path in ("/apis", "/openapi/v2", "/openapi/v3"):
            await _get(server, path)
        for number in (1, 4):
            path = f"{CRDS}/things{number}.g1.example.com"
            assert (await server.ask("DELETE", path)).status == 200
            assert (await server.ask("GET", path)).status == 404

        for path in ("/", "/apis", "/openapi/v2", "/openapi/v3"):
            assert b"g1.example.com" not in (await _get(server, path)).body
        assert (await _get(server, "/apis/g1.example.com")).status == 404
        assert (await _get(server, "/apis/g1.example.com/v1")).status == 404
        assert (await _get(server, "/openapi/v3/apis/g1.example.com/v1")).status == 404

    _in_server(act)
