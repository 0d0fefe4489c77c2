"""The other side of the Kubernetes API: raw JSON over HTTPS, failures as ``ApiError``.

Knows verbs and paths, never what a resource means, and never retries: whoever loops decides,
by ``error.retryable`` and ``error.retry_after``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import orjson

from instar.client.kubeconfig import Access
from instar.client.pace import Pace
from instar.errors import ApiError, ServiceUnavailable, Timeout, Unclassified, from_status
from instar.plain import Object

if TYPE_CHECKING:
    import aiohttp

Query = Mapping[str, str | int | bool | None]
PatchType = Literal["merge", "json", "apply", "strategic"]

_PATCH_TYPES: dict[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
    "strategic": "application/strategic-merge-patch+json",
}
_BROKEN_GATEWAY = {502, 503}
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Client:
    """One server, one identity, one pool of connections. Use as ``async with Client(access)``."""

    def __init__(
        self,
        access: Access,
        *,
        qps: float = 0,
        burst: int = 10,
        timeout: float = 60,
        user_agent: str = "instar",
    ) -> None:
        self._access = access
        self._pace = Pace(qps, burst)
        self._timeout = timeout
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._tls = access.ssl_context()

    @property
    def access(self) -> Access:
        return self._access

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, path: str, **query: str | int | bool | None) -> Object:
        return await self.request("GET", path, query=query)

    async def list(
        self, path: str, *, limit: int = 0, continue_: str = "", **query: str | int | bool | None
    ) -> Object:
        """One page, as the server sent it; ``metadata.continue`` leads to the next."""
        return await self.get(path, limit=limit or None, **{"continue": continue_ or None}, **query)

    async def pages(
        self, path: str, *, limit: int = 500, **query: str | int | bool | None
    ) -> AsyncIterator[Object]:
        """Every page; an expired token ends it with ``Expired``, which the caller may resume."""
        token = ""
        while True:
            page = await self.list(path, limit=limit, continue_=token, **query)
            yield page
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    async def metadata_pages(self, path: str, *, limit: int = 500) -> AsyncIterator[Object]:
        """Every page, with the metadata of its objects alone."""
        token = ""
        while True:
            query = {"limit": limit, "continue": token or None}
            page = await self.request("GET", path, query=query, accept=_METADATA)
            yield page
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return

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
        """The JSON answer, or an ``ApiError``; a lost connection is ``ServiceUnavailable``."""
        import aiohttp

        await self._pace.wait()
        session = self._open_session()
        try:
            async with session.request(
                method,
                f"{self._access.server}{path}",
                params=_params(query),
                data=None if body is None else orjson.dumps(body),
                headers=self._headers(None if body is None else content_type, accept),
                server_hostname=self._access.server_name,
            ) as response:
                data = await response.read()
                if response.status < 400:
                    return _decode(data)
                raise _failure(response.status, data, response.headers)
        except TimeoutError:
            raise Timeout(f"{method} {path}: no answer within {self._timeout:g} s") from None
        except aiohttp.ClientError as error:
            raise ServiceUnavailable(f"{method} {path}: {error or type(error).__name__}") from None

    def _open_session(self) -> aiohttp.ClientSession:
        from urllib.request import getproxies

        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls if self._tls else True),
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                # aiohttp looks for proxies and .netrc in a thread, for every single request.
                trust_env=bool(getproxies()),
            )
        return self._session

    def _headers(self, content_type: str | None, accept: str) -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": self._user_agent}
        if content_type:
            headers["Content-Type"] = content_type
        token = self._access.bearer()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        elif self._access.basic:
            import aiohttp

            headers["Authorization"] = aiohttp.BasicAuth(*self._access.basic).encode()
        return headers


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


def _failure(code: int, data: bytes, headers: Mapping[str, str]) -> ApiError:
    """A Status if the body is one; a proxy's page or plain text otherwise."""
    try:
        status = orjson.loads(data)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = data[:200].decode(errors="replace").strip() or f"HTTP {code}"
        reason = "ServiceUnavailable" if code in _BROKEN_GATEWAY else ""
        status = {"message": text, "code": code, "reason": reason}
    error = from_status(status, code)
    if not error.retry_after and headers.get("Retry-After", "").isdecimal():
        error.retry_after = int(headers["Retry-After"])
    return error
