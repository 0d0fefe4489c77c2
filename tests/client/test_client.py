from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme
from aiohttp import web
from aiohttp.test_utils import TestServer

from instar.base.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Invalid,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unclassified,
    from_status,
    not_found,
)
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import Access
from instar.wire.client.paths import crd_path, resource_path
from instar.wire.client.rate_limit import TokenBucket

pytestmark = pytest.mark.anyio
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def _client(handler: Handler, **options: Any) -> AsyncIterator[Client]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server:
        access = Access(server=str(server.make_url("")).rstrip("/"), token="t")
        async with Client(access, **options) as client:
            yield client


async def _echo(request: web.Request) -> web.Response:
    return web.json_response(
        {
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "type": request.headers.get("Content-Type", ""),
            "authorization": request.headers.get("Authorization", ""),
            "body": await request.json() if request.can_read_body else None,
        }
    )


async def test_verbs_carry_method_query_body_and_token() -> None:
    async with _client(_echo) as client:
        got = await client.get("/a", watch=False, absent=None)
        put = await client.put("/b", {"x": 1}, dryRun="All")
        patched = await client.patch("/c", [{"op": "add"}], type="json")
        deleted = await client.delete("/d")

    assert got["query"] == {"watch": "false"}
    assert got["authorization"] == "Bearer t"
    assert (put["method"], put["body"], put["query"]) == ("PUT", {"x": 1}, {"dryRun": "All"})
    assert patched["type"] == "application/json-patch+json"
    assert (deleted["method"], deleted["body"]) == ("DELETE", None)


async def test_pages_follow_the_continue_token() -> None:
    async def handler(request: web.Request) -> web.Response:
        token = request.query.get("continue", "")
        meta = {} if token == "b" else {"continue": "b" if token == "a" else "a"}
        return web.json_response({"items": [token], "metadata": meta})

    async with _client(handler) as client:
        items = [page["items"][0] async for page in client.pages("/x", limit=1)]

    assert items == ["", "a", "b"]


@pytest.mark.parametrize("listing", ["pages", "metadata_pages"])
async def test_pages_continue_where_the_position_in_the_list_expires(listing: str) -> None:
    async def handler(request: web.Request) -> web.Response:
        token = request.query.get("continue", "")
        if token == "old":
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            return web.json_response({**status, "metadata": {"continue": "new"}}, status=410)
        meta = {} if token == "new" else {"continue": "old"}
        return web.json_response({"items": [token], "metadata": meta})

    async with _client(handler) as client:
        items = [page["items"][0] async for page in getattr(client, listing)("/x", limit=1)]

    assert items == ["", "new"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"reason": "NotFound", "code": 404}, NotFound),
        ({"reason": "Conflict", "code": 409}, Conflict),
        ({"reason": "Invalid", "code": 422}, Invalid),
        ({"reason": "Gone", "code": 410}, Expired),
        ({"code": 500}, Unclassified),
        ({"reason": "Novel", "code": 418}, BadRequest),
    ],
)
async def test_a_status_becomes_its_error(status: dict[str, Any], expected: type[ApiError]) -> None:
    async def handler(_: web.Request) -> web.Response:
        body = {"kind": "Status", "message": "why", **status}
        return web.json_response(body, status=status["code"])

    async with _client(handler) as client:
        with pytest.raises(expected, match="why"):
            await client.get("/x")


async def test_retry_after_is_read_from_details_or_header() -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.path == "/plain":
            return web.Response(status=503, text="down", headers={"Retry-After": "3"})
        details = {"retryAfterSeconds": 7}
        body = {"kind": "Status", "reason": "TooManyRequests", "details": details}
        return web.json_response(body, status=429)

    async with _client(handler) as client:
        with pytest.raises(TooManyRequests) as busy:
            await client.get("/status")
        with pytest.raises(ServiceUnavailable) as down:
            await client.get("/plain")

    assert (busy.value.retry_after, down.value.retry_after) == (7, 3)
    assert down.value.message == "down"


async def test_lost_connection_and_silence_are_retryable() -> None:
    async def silent(_: web.Request) -> web.Response:
        await stopped.wait()
        return web.Response()

    stopped = asyncio.Event()
    async with Client(Access(server="http://127.0.0.1:1")) as nobody:
        with pytest.raises(ServiceUnavailable) as refused:
            await nobody.get("/x")
    async with _client(silent, timeout=0.05) as client:
        with pytest.raises(Timeout) as late:
            await client.get("/x")
        stopped.set()

    assert refused.value.retryable
    assert late.value.retryable


async def test_an_answer_that_is_not_json_is_an_error() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text="<html>")

    async with _client(handler) as client:
        with pytest.raises(Unclassified, match="not JSON"):
            await client.get("/x")


async def test_tls_verifies_against_the_given_authority_and_name() -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("api.internal").configure_cert(context)
    app = web.Application()
    app.router.add_get("/x", _echo)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context)
    url = f"https://127.0.0.1:{server.port}"
    ca = authority.cert_pem.bytes()

    async with Client(Access(server=url, ca=ca, server_name="api.internal")) as client:
        answer = await client.get("/x")
    async with Client(Access(server=url, ca=trustme.CA().cert_pem.bytes())) as client:
        with pytest.raises(ServiceUnavailable, match="certificate verify failed"):
            await client.get("/x")
    await server.close()

    assert answer["path"] == "/x"


def test_from_status_inverts_to_status() -> None:
    error = not_found("example.com", "widgets", "a")

    assert from_status(error.to_status()).to_status() == error.to_status()


def test_pace_spends_the_burst_then_spreads() -> None:
    now = [0.0]
    pace = TokenBucket(qps=2, burst=2, clock=lambda: now[0])
    now[0] = 10.0

    waits = [pace.reserve() for _ in range(4)]

    assert waits == [0.0, 0.0, 0.5, 1.0]


def test_no_qps_means_no_waiting() -> None:
    pace = TokenBucket(qps=0)

    assert {pace.reserve() for _ in range(100)} == {0.0}


def test_paths_of_core_group_custom_and_crd() -> None:
    assert resource_path("", "v1", "pods", namespace="n", name="a/b") == (
        "/api/v1/namespaces/n/pods/a%2Fb"
    )
    assert resource_path("g.io", "v2", "widgets") == "/apis/g.io/v2/widgets"
    assert crd_path("w.g.io", subresource="status").endswith("definitions/w.g.io/status")
