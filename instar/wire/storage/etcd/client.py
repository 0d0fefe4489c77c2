"""Calls to an etcd cluster: several endpoints, TLS, users, and what a failure means.

It moves bytes and knows errors; messages are ``etcd_wire``'s, the contract is ``etcd``'s.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeVar

from instar.base.fast_dataclass import dataclass
from instar.wire.rpc.channel import Conversation, GrpcChannel, Metadata
from instar.wire.rpc.status import GrpcCode, RpcError
from instar.wire.storage.etcd import messages as wire
from instar.wire.storage.protobuf_fields import UNREADABLE
from instar.wire.storage.store import StoreError, Unavailable, ValueTooLarge

T = TypeVar("T")

RANGE = "/etcdserverpb.KV/Range"
TXN = "/etcdserverpb.KV/Txn"
PUT = "/etcdserverpb.KV/Put"
COMPACT = "/etcdserverpb.KV/Compact"
_WATCH = "/etcdserverpb.Watch/Watch"
_STATUS = "/etcdserverpb.Maintenance/Status"
_AUTHENTICATE = "/etcdserverpb.Auth/Authenticate"
_WITH_LEADER: Metadata = (("hasleader", "true"),)
"""A member without a leader refuses such a call before it does anything, and ends such a watch."""
_NO_LEADER = "etcdserver: no leader"


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


class EtcdEndpoint:
    def __init__(self, address: str, tls: ssl.SSLContext | None) -> None:
        self.address = address
        self.channel = GrpcChannel(address, tls)

    async def call(
        self,
        method: str,
        request: bytes,
        patience: float,
        metadata: Metadata,
        prompt: bool = False,
    ) -> bytes:
        try:
            return await self.channel.call(method, request, patience, metadata, prompt)
        except RpcError as error:
            raise explain(error, self.address) from error

    def understood(self, answer: bytes, read: Callable[[bytes], T]) -> T:
        """Who answers what cannot be read may have done what he was asked, or not."""
        try:
            return read(answer)
        except UNREADABLE as error:
            raise Doubt(f"etcd {self.address}: an answer that cannot be read: {error}") from error


class EtcdClient:
    def __init__(self, addresses: list[str], options: EtcdOptions) -> None:
        self._options = options
        tls = _tls(options)
        self._endpoints = [EtcdEndpoint(address, tls) for address in addresses]
        self._at = 0
        self._token: Metadata = ()
        self._metadata = _WITH_LEADER
        self._signing_in = asyncio.Lock()

    @property
    def current(self) -> EtcdEndpoint:
        return self._endpoints[self._at]

    def leave(self, endpoint: EtcdEndpoint) -> None:
        """This endpoint does not answer: go on with the next one."""
        if endpoint is self.current:
            self._at = (self._at + 1) % len(self._endpoints)

    def ask(
        self, method: str, request: bytes, read: Callable[[bytes], T], prompt: bool = False
    ) -> Awaitable[T]:
        """A call that may be repeated: on every endpoint, until the time is over."""
        return self._insist(method, request, read, (Doubt, _NotSent), prompt)

    def send(self, method: str, request: bytes, read: Callable[[bytes], T]) -> Awaitable[T]:
        """A call that must not be carried out twice: ``Doubt`` when it may have been, once."""
        return self._insist(method, request, read, (_NotSent,))

    async def _insist(
        self,
        method: str,
        request: bytes,
        read: Callable[[bytes], T],
        again: tuple[type[StoreError], ...],
        prompt: bool = False,
    ) -> T:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._options.timeout, 0.02
        while True:
            try:
                left = deadline - loop.time()
                return await self._attempt(method, request, read, left, prompt)
            except again as error:
                if loop.time() + pause >= deadline:
                    raise Unavailable(str(error)) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)

    async def watch(
        self,
        first: bytes,
        on_message: Callable[[bytes], None],
        on_end: Callable[[RpcError | None], None],
    ) -> tuple[EtcdEndpoint, Conversation]:
        """A stream that etcd ends when its member has no leader, so that it cannot go silent.

        Raises ``Unavailable`` where there is nobody to ask.
        """
        endpoint = self.current
        try:
            if self._options.username and not self._token:
                await self._sign_in(endpoint, ())
            patience = self._options.timeout / 2
            return endpoint, await endpoint.channel.converse(
                _WATCH, first, on_message, on_end, patience, self._metadata
            )
        except (RpcError, _NotSent) as error:
            self.leave(endpoint)
            raise Unavailable(f"etcd {endpoint.address}: {error}") from error

    async def version(self, endpoint: EtcdEndpoint) -> tuple[int, ...]:
        """The member's version; ``(0,)`` when it does not tell."""
        try:
            answer = await endpoint.call(_STATUS, b"", self._options.timeout / 2, self._token)
            text = endpoint.understood(answer, wire.read_version)
            return tuple(int(part) for part in text.split("-")[0].split("."))
        except (StoreError, ValueError):
            return (0,)

    def forget_token(self) -> None:
        self._token, self._metadata = (), _WITH_LEADER

    async def close(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.channel.close()

    async def _attempt(
        self, method: str, request: bytes, read: Callable[[bytes], T], left: float, prompt: bool
    ) -> T:
        # Half of the time for one endpoint: a member that hangs leaves time for another.
        endpoint, patience = self.current, max(0.1, min(left, self._options.timeout / 2))
        try:
            if self._options.username and not self._token:
                await self._sign_in(endpoint, ())
            token = self._token
            try:
                answer = await endpoint.call(method, request, patience, self._metadata, prompt)
            except _TokenRefused:
                await self._sign_in(endpoint, token)
                answer = await endpoint.call(method, request, patience, self._metadata, prompt)
            return endpoint.understood(answer, read)
        except (Doubt, _NotSent):
            self.leave(endpoint)
            raise
        except _TokenRefused as error:
            raise Unavailable(str(error)) from error

    async def _sign_in(self, endpoint: EtcdEndpoint, refused: Metadata) -> None:
        async with self._signing_in:
            if self._token not in ((), refused):
                return  # another call was faster
            request = wire.authenticate_request(self._options.username, self._options.password)
            try:
                answer = await endpoint.call(_AUTHENTICATE, request, self._options.timeout / 2, ())
                token = endpoint.understood(answer, wire.read_token)
            except Doubt as error:
                raise _NotSent(str(error)) from error  # the call it was for was not sent
            self._token = (("token", token),)
            self._metadata = (*_WITH_LEADER, *self._token)


def explain(error: RpcError, address: str) -> StoreError:
    """What a failed call means for the one who made it."""
    code, text = error.code, error.text
    message = f"etcd {address}: {text or code.name}"
    if error.unsent or text == _NO_LEADER:
        return _NotSent(message)
    if code is GrpcCode.OUT_OF_RANGE:
        return HistoryGone(message) if "compacted" in text else NotYet(message)
    if "too large" in text or "larger than max" in text:
        return ValueTooLarge(message)
    if code is GrpcCode.RESOURCE_EXHAUSTED:
        return Unavailable(message)
    if code is GrpcCode.UNAUTHENTICATED or "auth store is old" in text:
        return _TokenRefused(message)
    return StoreError(message) if code in _REFUSALS else Doubt(message)


_REFUSALS = (
    GrpcCode.INVALID_ARGUMENT,
    GrpcCode.PERMISSION_DENIED,
    GrpcCode.FAILED_PRECONDITION,
    GrpcCode.UNIMPLEMENTED,
    GrpcCode.NOT_FOUND,
)


def _tls(options: EtcdOptions) -> ssl.SSLContext | None:
    if not (options.cafile or options.certfile or options.keyfile):
        return None
    try:
        context = ssl.create_default_context(cafile=_named(options.cafile))
        # Python 3.13 and later refuse authorities that other clients of the same cluster take.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.set_alpn_protocols(["h2"])
        if options.certfile or options.keyfile:
            certificate = _named(options.certfile or options.keyfile)
            assert certificate is not None
            context.load_cert_chain(certificate, _named(options.keyfile))
    except OSError as error:
        raise StoreError(f"etcd: {error}") from error
    return context


def _named(file: str) -> str | None:
    """A file that can be read: the error of the TLS library does not say which cannot."""
    if not file:
        return None
    try:
        with open(file, "rb"):
            return file
    except OSError as error:
        raise StoreError(f"etcd: {file}: {error.strerror}") from error
