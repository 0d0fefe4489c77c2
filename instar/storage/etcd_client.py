"""Calls to an etcd cluster: several endpoints, TLS, users, and what a failure means.

It moves bytes and knows errors; messages are ``etcd_wire``'s, the contract is ``etcd``'s.
One channel per endpoint, because gRPC's own balancing takes no list of host names to verify.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import grpc.aio

from instar.records import dataclass
from instar.storage import etcd_wire as wire
from instar.storage.store import StoreError, TooLarge, Unavailable

RANGE = "/etcdserverpb.KV/Range"
TXN = "/etcdserverpb.KV/Txn"
PUT = "/etcdserverpb.KV/Put"
COMPACT = "/etcdserverpb.KV/Compact"
_WATCH = "/etcdserverpb.Watch/Watch"
_STATUS = "/etcdserverpb.Maintenance/Status"
_AUTHENTICATE = "/etcdserverpb.Auth/Authenticate"

_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),  # what is safe to send twice is decided here
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 7000),  # etcd refuses pings more often than every 5 s
    ("grpc.keepalive_timeout_ms", 3000),
]

WatchStream = grpc.aio.StreamStreamCall[bytes, bytes]
Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdOptions:
    """How to reach the cluster. Any of the files turns TLS on."""

    cafile: str = ""
    certfile: str = ""
    keyfile: str = ""
    username: str = ""
    password: str = ""
    timeout: float = 5.0
    """How long a call may look for a member that answers."""


class HistoryGone(StoreError):
    """etcd has compacted the asked revision."""


class NotYet(StoreError):
    """etcd has not reached the asked revision."""


class Doubt(StoreError):
    """A call was sent and not answered: it may have been carried out."""


class _NotSent(StoreError):
    """The call reached no server; it may be sent again."""


class _TokenRefused(StoreError):
    """The user's token is not valid (any more); the call was not carried out."""


class Endpoint:
    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None) -> None:
        self.address = address
        self.channel: grpc.aio.Channel = (
            grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
            if credentials is None
            else grpc.aio.secure_channel(address, credentials, options=_CHANNEL_OPTIONS)
        )
        self._methods: dict[str, grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = {}

    async def call(self, method: str, request: bytes, patience: float, metadata: Metadata) -> bytes:
        callable_ = self._methods.get(method)
        if callable_ is None:
            callable_ = self._methods[method] = self.channel.unary_unary(method)
        try:
            return await callable_(request, timeout=patience, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise explain(error, self.address) from error


class EtcdClient:
    def __init__(self, addresses: list[str], options: EtcdOptions) -> None:
        self._options = options
        credentials = _credentials(options)
        self._endpoints = [Endpoint(address, credentials) for address in addresses]
        self._at = 0
        self._token: Metadata = ()
        self._signing_in = asyncio.Lock()

    @property
    def current(self) -> Endpoint:
        return self._endpoints[self._at]

    def leave(self, endpoint: Endpoint) -> None:
        """This endpoint does not answer: go on with the next one."""
        if endpoint is self.current:
            self._at = (self._at + 1) % len(self._endpoints)

    async def ask(self, method: str, request: bytes) -> bytes:
        """A call that may be repeated: on every endpoint, until the time is over."""
        return await self._insist(method, request, (Doubt, _NotSent))

    async def send(self, method: str, request: bytes) -> bytes:
        """A call that must not be carried out twice: ``Doubt`` when it may have been, once."""
        return await self._insist(method, request, (_NotSent,))

    async def _insist(
        self, method: str, request: bytes, again: tuple[type[StoreError], ...]
    ) -> bytes:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._options.timeout, 0.02
        while True:
            try:
                return await self._attempt(method, request, deadline - loop.time())
            except again as error:
                if loop.time() + pause >= deadline:
                    raise Unavailable(str(error)) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)

    async def watch(self) -> tuple[Endpoint, WatchStream]:
        """A stream that etcd ends when its member has no leader, so that it cannot go silent."""
        if self._options.username and not self._token:
            await self._sign_in(self.current, ())
        endpoint = self.current
        stream: WatchStream = endpoint.channel.stream_stream(_WATCH)(
            metadata=(("hasleader", "true"), *self._token)
        )
        return endpoint, stream

    async def version(self, endpoint: Endpoint) -> tuple[int, ...]:
        """The member's version; ``(0,)`` when it does not tell."""
        try:
            answer = await endpoint.call(_STATUS, b"", self._options.timeout / 2, self._token)
            return tuple(int(part) for part in wire.read_version(answer).split("-")[0].split("."))
        except (StoreError, ValueError):
            return (0,)

    def forget_token(self) -> None:
        self._token = ()

    async def close(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.channel.close()

    async def _attempt(self, method: str, request: bytes, left: float) -> bytes:
        # Half of the time for one endpoint: a member that hangs leaves time for another.
        endpoint, patience = self.current, max(0.1, min(left, self._options.timeout / 2))
        try:
            if self._options.username and not self._token:
                await self._sign_in(endpoint, ())
            token = self._token
            try:
                return await endpoint.call(method, request, patience, token)
            except _TokenRefused:
                await self._sign_in(endpoint, token)
                return await endpoint.call(method, request, patience, self._token)
        except (Doubt, _NotSent):
            self.leave(endpoint)
            raise
        except _TokenRefused as error:
            raise Unavailable(str(error)) from error

    async def _sign_in(self, endpoint: Endpoint, refused: Metadata) -> None:
        async with self._signing_in:
            if self._token != refused:
                return
            request = wire.authenticate_request(self._options.username, self._options.password)
            try:
                answer = await endpoint.call(_AUTHENTICATE, request, self._options.timeout / 2, ())
            except Doubt as error:
                raise _NotSent(str(error)) from error  # the call it was for was not sent
            self._token = (("token", wire.read_token(answer)),)


def explain(error: grpc.aio.AioRpcError, address: str) -> StoreError:
    """What a failed call means for the one who made it."""
    code, text = error.code(), error.details() or ""
    message = f"etcd {address}: {text or code.name}"
    if code is grpc.StatusCode.OUT_OF_RANGE:
        return HistoryGone(message) if "compacted" in text else NotYet(message)
    if "too large" in text or "larger than max" in text:
        return TooLarge(message)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return Unavailable(message)
    if code is grpc.StatusCode.UNAUTHENTICATED or "auth store is old" in text:
        return _TokenRefused(message)
    if code in _REFUSALS:
        return StoreError(message)
    return _NotSent(message) if "failed to connect" in text else Doubt(message)


_REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.NOT_FOUND,
)


def _credentials(options: EtcdOptions) -> grpc.ChannelCredentials | None:
    files = (options.cafile, options.keyfile, options.certfile)
    if not any(files):
        return None
    try:
        ca, key, cert = (Path(file).read_bytes() if file else None for file in files)
    except OSError as error:
        raise StoreError(f"etcd: {error.filename}: {error.strerror}") from error
    return grpc.ssl_channel_credentials(ca, key, cert)
