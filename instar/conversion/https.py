"""One webhook's HTTPS connections: the only module that knows the HTTP library.

Imported when the first webhook is called, not at start-up: the library takes longer to import
than the rest of the server.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from instar.conversion import dialtext
from instar.conversion.failure import CallFailed
from instar.conversion.httpstatus import HttpReply
from instar.conversion.resolver import Resolver, Target, Unresolved

IDLE_SECONDS = 90.0
_HEADERS = {
    "User-Agent": "kube-apiserver-admission",
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
    "Accept-Encoding": "gzip",
}
AddressInfo = tuple[
    int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
]
"""What ``getaddrinfo`` returns."""
_CERTIFICATE = re.compile(
    "-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """PEM files shown to webhooks that ask who is calling."""

    certificate: str
    key: str


def tls_context(ca_bundle: str, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """Trust the bundle alone; without one, what the system trusts. Raises ``CallFailed``."""
    try:
        context = ssl.create_default_context(cadata=_certificates(ca_bundle))
    except (binascii.Error, ssl.SSLError) as error:
        raise CallFailed(
            "unable to load root certificates: unable to parse bytes as PEM block",
            advice="clientConfig.caBundle must be base64 of PEM certificates",
        ) from error
    # As in Go: the bundle may hold an intermediate or the very certificate, and only
    # subject alternative names count.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    if certificate is not None:
        try:
            context.load_cert_chain(certificate.certificate, certificate.key)
        except OSError as error:
            raise CallFailed(
                f"unable to load the client certificate: {error}",
                advice="check the certificate and key files given to the server",
            ) from error
    return context


def _certificates(ca_bundle: str) -> str | None:
    """The certificates alone: comments and other PEM blocks do not matter, as in Go."""
    pem = base64.b64decode(ca_bundle).decode("utf-8", "replace")
    if not pem.strip():
        return None
    found = _CERTIFICATE.findall(pem)
    if not found:
        raise binascii.Error("no certificate")
    return "\n".join(found)


class HttpsClient:
    """Keep-alive connections to one webhook. ``post`` sends once; deadlines are the caller's."""

    def __init__(
        self, tls: ssl.SSLContext, dialer: Dialer, proxy: str | None, most_bytes: int
    ) -> None:
        self._dialer = dialer
        self._proxy = proxy
        self._most_bytes = most_bytes
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                ssl=tls,
                resolver=dialer,
                limit=0,
                use_dns_cache=False,
                keepalive_timeout=IDLE_SECONDS,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            trace_configs=[_reuse_tracer()],
        )

    async def close(self) -> None:
        await self._session.close()

    async def post(self, url: str, body: bytes) -> HttpReply:
        """Sends again, once, when a connection kept from an earlier call turns out to be dead."""
        seen = SimpleNamespace(reused=False)
        try:
            return await self._send(url, body, seen)
        except (aiohttp.ServerDisconnectedError, ConnectionError) as error:
            if not seen.reused:
                raise self._failed(url, error) from error
        except (aiohttp.ClientError, OSError, Unresolved) as error:
            raise self._failed(url, error) from error
        try:
            return await self._send(url, body, SimpleNamespace(reused=False))
        except (aiohttp.ClientError, OSError, Unresolved) as error:
            raise self._failed(url, error) from error

    async def _send(self, url: str, body: bytes, seen: SimpleNamespace) -> HttpReply:
        async with self._session.post(
            URL(url, encoded=True),
            data=body,
            headers={**_HEADERS, "Host": url.split("/", 3)[2]},
            allow_redirects=False,
            proxy=self._proxy,
            trace_request_ctx=seen,
        ) as response:
            try:
                content = await self._read(response)
            except (aiohttp.ClientError, OSError) as error:
                raise CallFailed(
                    "unexpected error when reading response body. Please retry. "
                    f"Original error: {_reading_problem(error)}",
                    advice="the webhook's answer ended early or is not valid HTTP; see its log",
                ) from error
            return HttpReply(
                status=response.status,
                content_type=response.headers.get("Content-Type", ""),
                body=content,
                retry_after=response.headers.get("Retry-After", ""),
                location=response.headers.get("Location", "") if response.status < 400 else "",
            )

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        chunks, size = [], 0
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > self._most_bytes:
                raise CallFailed(
                    f"the response body is larger than {self._most_bytes} bytes",
                    advice="the webhook must answer with the converted objects and nothing else",
                )
        return b"".join(chunks)

    def _failed(self, url: str, error: Exception) -> CallFailed:
        explained = self._explained(url, error)
        return CallFailed(f'Post "{url}": {explained.text}', advice=explained.advice)

    def _explained(self, url: str, error: Exception) -> dialtext.Explained:
        host = URL(url, encoded=True).host or ""
        if isinstance(error, Unresolved):
            return dialtext.Explained(str(error), error.advice)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return dialtext.tls_failure(host, _as_ssl_error(error.certificate_error))
        problem = _origin(error)
        if isinstance(problem, ssl.SSLError):
            return dialtext.tls_failure(host, problem)
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return dialtext.lookup_failure(error.host)
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            dialled = dialtext.connect_failure(f"{error.host}:{error.port}", error.os_error)
            return dialtext.Explained(f"proxyconnect tcp: {dialled.text}", dialled.advice)
        address = self._dialer.address(url)
        if isinstance(error, aiohttp.ClientConnectorError) and isinstance(problem, OSError):
            return dialtext.connect_failure(address, problem)
        if isinstance(error, aiohttp.ServerDisconnectedError) or not isinstance(problem, OSError):
            return _protocol_problem(error)
        return dialtext.broken_connection(address, problem)


class _Connector(aiohttp.TCPConnector):
    """Hangs up at once where a connection is not kept, above all on a call that was given up.

    The library says goodbye politely, and a webhook that hangs does not answer that either:
    its connections would stay for half a minute after everybody has stopped waiting.
    """

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        if should_close or protocol.should_close:
            protocol.abort()
        super()._release(key, protocol, should_close=should_close)


class Dialer(AbstractResolver):
    """Finds the address behind a URL's host; for a service, what stands behind the service."""

    def __init__(self, service: tuple[str, str, int] | None, resolver: Resolver) -> None:
        self._service = service
        self._resolver = resolver
        self._dialled: Target | None = None

    def address(self, url: str) -> str:
        """What was dialled last, as Go prints it."""
        parsed = URL(url, encoded=True)
        target = self._dialled or Target(parsed.host or "", parsed.port or 443)
        host = f"[{target.host}]" if ":" in target.host else target.host
        return f"{host}:{target.port}"

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        target = Target(host, port)
        if self._service is not None:
            target = await self._resolver.resolve(*self._service)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                target.host, target.port, type=socket.SOCK_STREAM, family=family
            )
        except socket.gaierror as error:
            if self._service is None:
                raise
            raise _unknown_service(self._service, target) from error
        results = _resolve_results(host, found)
        if results:
            self._dialled = Target(results[0]["host"], results[0]["port"])
        return results

    async def close(self) -> None:
        """Nothing is held open."""


def _unknown_service(service: tuple[str, str, int], target: Target) -> Unresolved:
    namespace, name, _ = service
    if target.host != f"{name}.{namespace}.svc":
        return Unresolved(
            f"dial tcp: lookup {target.host}: no such host",
            f'the service "{name}" points to {target.host}, which has no address here',
        )
    return Unresolved(
        f'service "{name}" not found',
        f"no --service mapping and no Service object gives an address for {namespace}/{name}, "
        f"and DNS does not know {target.host}",
    )


def _resolve_results(hostname: str, found: Sequence[AddressInfo]) -> list[ResolveResult]:
    return [
        ResolveResult(
            hostname=hostname,
            host=str(address[0]),
            port=int(address[1]),
            family=family,
            proto=proto,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for family, _, proto, _, address in found
    ]


def _reuse_tracer() -> aiohttp.TraceConfig:
    """Tells which calls went over a kept connection: only those may be repeated unasked."""
    tracer = aiohttp.TraceConfig()

    async def reused(
        session: aiohttp.ClientSession,
        context: SimpleNamespace,
        params: aiohttp.TraceConnectionReuseconnParams,
    ) -> None:
        context.trace_request_ctx.reused = True

    tracer.on_connection_reuseconn.append(reused)
    return tracer


def _origin(error: Exception) -> BaseException:
    """What the library wrapped: only the original says why."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error
    return error.__cause__ if isinstance(error.__cause__, OSError) else error


def _as_ssl_error(error: Exception) -> ssl.SSLError:
    return error if isinstance(error, ssl.SSLError) else ssl.SSLError(str(error))


def _reading_problem(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return "unexpected EOF"
    return str(error)


def _protocol_problem(error: Exception) -> dialtext.Explained:
    if isinstance(error, aiohttp.ClientResponseError):
        return dialtext.Explained(
            "net/http: HTTP/1.x transport connection broken: malformed HTTP response",
            "the webhook's answer is not valid HTTP",
        )
    return dialtext.closed_without_answer()
