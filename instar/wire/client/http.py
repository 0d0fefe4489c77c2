"""HTTP client of the tools: one connection pool, bodies as bytes.

Used by ``client.py``, ``tools/console/hosts/kubeconfig.py`` (the console's proxy),
``tools/sdk/checking/responders.py`` and ``server/audit/setup.py``. This is the only module that
imports ``aiohttp``, which is slow to import, so callers import this module when they open the first
connection.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from urllib.request import getproxies

import aiohttp
from yarl import URL

from instar.wire.client.transport import ClientReply, ConnectionLost


class OpenedResponse:
    """A response that is being read."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield chunks as they arrive. Raises ``ConnectionLost``."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (TimeoutError, aiohttp.ClientError) as error:
            raise ConnectionLost(str(error) or type(error).__name__) from None

    def close(self) -> None:
        """Drop the connection at once if the response has not ended: a TLS shutdown would wait for
        the server, and the event loop may end before that."""
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()


class Http:
    """HTTP client of the tools: TLS, connection pool, deadline."""

    def __init__(
        self, tls: ssl.SSLContext | None, seconds: float, *, proxies: bool, proxy: str | None = None
    ) -> None:
        """``seconds`` limits one request with its whole answer; ``proxies`` enables those of the
        environment, which ``proxy`` replaces."""
        self._tls = tls
        self._proxy = proxy
        # Otherwise aiohttp would look for them (and .netrc) in a thread for every request.
        self._proxies = proxies and proxy is None and bool(getproxies())
        self._seconds = seconds
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]],
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        server_name: str | None = None,
    ) -> ClientReply:
        """Send a request. Raises ``TimeoutError`` or ``ConnectionLost``; any status is a reply."""
        try:
            async with self._open().request(
                method,
                url,
                params=query,
                data=body,
                headers=headers,
                server_hostname=server_name,
                proxy=self._proxy,
            ) as response:
                return ClientReply(response.status, response.headers, await response.read())
        except TimeoutError:
            raise TimeoutError(f"no answer within {self._seconds:g} s") from None
        except aiohttp.ClientError as error:
            raise ConnectionLost(str(error) or type(error).__name__) from None

    async def open(
        self,
        method: str,
        url: str,
        *,
        headers: Sequence[tuple[str, str]],
        body: bytes | None = None,
        server_name: str | None = None,
    ) -> OpenedResponse:
        """Open a response that may stream endlessly; ``url`` is sent as given. Raises
        ``ConnectionLost``."""
        try:
            response = await self._open().request(
                method,
                URL(url, encoded=True),
                data=body,
                headers=headers,
                server_hostname=server_name,
                proxy=self._proxy,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._seconds),
            )
        except (TimeoutError, aiohttp.ClientError) as error:
            raise ConnectionLost(str(error) or type(error).__name__) from None
        return OpenedResponse(response)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls if self._tls else True),
                timeout=aiohttp.ClientTimeout(total=self._seconds),
                trust_env=self._proxies,
            )
        return self._session
