"""Kubernetes API client: JSON over HTTPS, failures as ``ApiError``.

Used by the CLI commands and tools. The client works on verbs and paths, and never retries: callers
decide by ``error.retryable`` and ``error.retry_after``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Self
from urllib.parse import urlencode

import orjson

from instar.base.errors import (
    ApiError,
    Expired,
    ServiceUnavailable,
    Timeout,
    Unclassified,
    from_status,
)
from instar.base.json_values import Object
from instar.wire.client.exec_credentials import Credential
from instar.wire.client.kubeconfig import Access
from instar.wire.client.rate_limit import TokenBucket
from instar.wire.client.transport import (
    ClientReply,
    ConnectionLost,
    Sender,
    StreamingSender,
)

Query = Mapping[str, str | int | bool | None]
PatchType = Literal["merge", "json", "apply", "strategic"]

_PATCH_TYPES: dict[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
    "strategic": "application/strategic-merge-patch+json",
}
_BROKEN_GATEWAY = {502, 503}
_UNAUTHORIZED = 401
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Client:
    """One server, one identity, one pool of connections. Use as ``async with Client(access)``."""

    def __init__(
        self,
        access: Access,
        *,
        burst: int = 10,
        timeout: float = 60,
        user_agent: str = "instar",
        sender: Sender | None = None,
    ) -> None:
        """``access.qps`` limits the request rate; ``sender`` replaces the client's own
        connections."""
        self._access = access
        self._pace = TokenBucket(access.qps, burst)
        self._timeout = timeout
        self._user_agent = user_agent
        self._own_connections = sender is None
        self._sender = sender
        self._shown: Credential | None = None
        dials = sender is None and access.plugin is None
        self._tls = access.ssl_context() if dials else None

    @property
    def access(self) -> Access:
        return self._access

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._sender is not None and self._own_connections:
            await self._sender.close()
            self._sender = None

    async def get(self, path: str, **query: str | int | bool | None) -> Object:
        return await self.request("GET", path, query=query)

    async def list(
        self, path: str, *, limit: int = 0, continue_: str = "", **query: str | int | bool | None
    ) -> Object:
        """Return one page as the server sent it; ``metadata.continue`` is the token of the next."""
        return await self.get(path, limit=limit or None, **{"continue": continue_ or None}, **query)

    async def pages(
        self, path: str, *, limit: int = 500, **query: str | int | bool | None
    ) -> AsyncIterator[Object]:
        """Yield every page. If the continue token expires, because reading took longer than the
        server keeps old revisions, the rest is read at a newer revision."""

        def listing(continue_: str) -> Awaitable[Object]:
            return self.list(path, limit=limit, continue_=continue_, **query)

        async for page in _every_page(listing):
            yield page

    async def list_metadata(self, path: str, *, limit: int = 0, continue_: str = "") -> Object:
        """Return one page with the metadata of its objects alone."""
        query = {"limit": limit or None, "continue": continue_ or None}
        return await self.request("GET", path, query=query, accept=_METADATA)

    async def metadata_pages(self, path: str, *, limit: int = 500) -> AsyncIterator[Object]:
        """Yield every page with only the metadata of its objects, as ``pages`` does."""

        def listing(continue_: str) -> Awaitable[Object]:
            return self.list_metadata(path, limit=limit, continue_=continue_)

        async for page in _every_page(listing):
            yield page

    async def post(self, path: str, body: Object, **query: str | int | bool | None) -> Object:
        return await self.request("POST", path, body=body, query=query)

    async def put(self, path: str, body: Object, **query: str | int | bool | None) -> Object:
        return await self.request("PUT", path, body=body, query=query)

    async def patch(
        self,
        path: str,
        body: Any,
        *,
        type: PatchType = "merge",
        **query: str | int | bool | None,
    ) -> Object:
        return await self.request(
            "PATCH", path, body=body, query=query, content_type=_PATCH_TYPES[type]
        )

    async def delete(
        self, path: str, body: Object | None = None, **query: str | int | bool | None
    ) -> Object:
        return await self.request("DELETE", path, body=body, query=query)

    async def response_headers(self, path: str) -> Mapping[str, str]:
        """GET, and return the headers of the answer. Raises ``ApiError``."""
        await self._pace.wait()
        headers = [("Accept", "application/json"), ("User-Agent", self._user_agent)]
        reply = await self._send("GET", path, headers, None, None)
        if reply.status >= 400:
            raise _failure(reply)
        return reply.headers

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Query | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        """Return the JSON answer; raises ``ApiError`` (a lost connection is
        ``ServiceUnavailable``)."""
        await self._pace.wait()
        headers = [("Accept", accept), ("User-Agent", self._user_agent)]
        if body is not None:
            headers.append(("Content-Type", content_type))
        sent = None if body is None else orjson.dumps(body)
        reply = await self._send(method, path, headers, sent, query)
        plugin = self._access.plugin
        if reply.status == _UNAUTHORIZED and plugin is not None:
            # A credential can expire early; run its program once more.
            plugin.forget()
            reply = await self._send(method, path, headers, sent, query)
        if reply.status < 400:
            return _decode(reply.body)
        raise _failure(reply)

    async def lines(self, path: str, *, query: Query | None = None) -> AsyncGenerator[bytes]:
        """Yield the lines of a watch as they arrive, until the server ends it. Raises ``ApiError``
        if the server rejects the watch, ``ConnectionLost`` if the connection breaks."""
        await self._pace.wait()
        sender = await self.connected()
        assert isinstance(sender, StreamingSender), "watches need connections of our own"
        headers = [("Accept", "application/json"), ("User-Agent", self._user_agent)]
        reply = await sender.open(
            "GET",
            f"{self._access.server}{path}?{urlencode(_params(query))}",
            headers=[*headers, *self._access.headers()],
            server_name=self._access.server_name,
        )
        rest = b""
        try:
            async for chunk in reply.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                if reply.status >= 400:
                    rest = b"\n".join([*lines, rest])
                    continue
                for line in lines:
                    yield line
        finally:
            reply.close()
        if reply.status >= 400:
            raise _failure(ClientReply(reply.status, reply.headers, rest))

    async def download(self, path: str) -> AsyncIterator[bytes]:
        """POST without a body and yield the answer, of any length, as it arrives. Raises
        ``ApiError`` if the server refuses, ``ConnectionLost`` if the answer is cut short."""
        await self._pace.wait()
        sender = await self.connected()
        assert isinstance(sender, StreamingSender), "downloads need connections of our own"
        headers = [("User-Agent", self._user_agent), *self._access.headers()]
        reply = await sender.open(
            "POST",
            f"{self._access.server}{path}",
            headers=headers,
            server_name=self._access.server_name,
        )
        refusal = b""
        try:
            async for chunk in reply.chunks():
                if reply.status < 400:
                    yield chunk
                else:
                    refusal += chunk
        finally:
            reply.close()
        if reply.status >= 400:
            raise _failure(ClientReply(reply.status, reply.headers, refusal))

    async def _send(
        self,
        method: str,
        path: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        query: Query | None,
    ) -> ClientReply:
        sender = await self.connected()
        try:
            return await sender.send(
                method,
                f"{self._access.server}{path}",
                headers=[*headers, *self._access.headers()],
                body=body,
                query=_params(query),
                server_name=self._access.server_name,
            )
        except TimeoutError as error:
            raise Timeout(f"{method} {path}: {error}") from None
        except ConnectionLost as error:
            raise ServiceUnavailable(f"{method} {path}: {error}") from None

    async def connected(self) -> Sender:
        """Return the sender, with valid credentials."""
        access = self._access
        if self._own_connections and access.plugin is not None:
            # In a thread, because the program may wait for the user.
            found = await asyncio.to_thread(access.credential)
            if found is not self._shown:
                await self.close()
                self._tls = access.ssl_context()
            self._shown = found
        if self._sender is None:
            # Imported here: importing aiohttp takes longer than most offline commands run.
            from instar.wire.client.http import Http

            self._sender = Http(self._tls, self._timeout, proxies=True, proxy=access.proxy)
        return self._sender


async def _every_page(listing: Callable[[str], Awaitable[Object]]) -> AsyncIterator[Object]:
    """Yield every page. Raises ``Expired`` if the server returns no token to resume from."""
    token = ""
    while True:
        try:
            page = await listing(token)
        except Expired as error:
            fresh = str(error.list_meta.get("continue") or "")
            if not token or not fresh:
                raise
            page = await listing(fresh)
        yield page
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return


def _params(query: Query | None) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (query or {}).items()
        if value is not None
    }


def _decode(data: bytes) -> Object:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Unclassified(f"the server's answer is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Unclassified("the server's answer is not a JSON object")
    return document


def _failure(reply: ClientReply) -> ApiError:
    """Return the error of a Status body, or of a proxy's page or plain text."""
    code = reply.status
    try:
        status = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = reply.body[:200].decode(errors="replace").strip() or f"HTTP {code}"
        reason = "ServiceUnavailable" if code in _BROKEN_GATEWAY else ""
        status = {"message": text, "code": code, "reason": reason}
    error = from_status(status, code)
    after = reply.headers.get("Retry-After", "")
    if not error.retry_after and after.isdecimal():
        error.retry_after = int(after)
    return error
