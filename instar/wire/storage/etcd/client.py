"""etcd client: gRPC calls to several endpoints with TLS, authentication and failover.

Used by the modules of this package. ``messages.py`` encodes requests and answers, ``store.py``
implements the ``Store`` contract; this module decides what a failed call means.
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
_SNAPSHOT = "/etcdserverpb.Maintenance/Snapshot"
_AUTHENTICATE = "/etcdserverpb.Auth/Authenticate"
_WITH_LEADER: Metadata = (("hasleader", "true"),)
"""With this header a member without a leader refuses a call at once, and ends a watch."""
_NO_LEADER = "etcdserver: no leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdOptions:
    """Connection options of the cluster. Any of the files enables TLS."""

    cafile: str = ""
    certfile: str = ""
    keyfile: str = ""
    username: str = ""
    password: str = ""
    timeout: float = 5.0
    """Seconds a call may look for a member that answers."""


class HistoryGone(StoreError):
    """The requested revision is compacted."""


class RevisionNotReached(StoreError):
    """The cluster has not reached the requested revision."""


class UnansweredCall(StoreError):
    """A call was sent and got no answer: it may have been executed."""


class _NotSent(StoreError):
    """The call reached no member; it may be sent again."""


class _TokenRefused(StoreError):
    """The auth token is invalid or expired; the call was not executed."""


class EtcdEndpoint:
    """One member of the cluster and its connection."""

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
        """Decode an answer. An unreadable answer raises ``UnansweredCall``: the call may have been
        executed."""
        try:
            return read(answer)
        except UNREADABLE as error:
            raise UnansweredCall(f"etcd {self.address}: unreadable answer: {error}") from error


class EtcdClient:
    """Client of the whole cluster: uses one endpoint until it fails, then the next."""

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
        """Fail over to the next endpoint, because this one does not answer."""
        if endpoint is self.current:
            self._at = (self._at + 1) % len(self._endpoints)

    def ask(
        self, method: str, request: bytes, read: Callable[[bytes], T], prompt: bool = False
    ) -> Awaitable[T]:
        """Make an idempotent call, on every endpoint in turn, until the timeout."""
        return self._call_until_answered(method, request, read, (UnansweredCall, _NotSent), prompt)

    def send(self, method: str, request: bytes, read: Callable[[bytes], T]) -> Awaitable[T]:
        """Make a call that must not be executed twice; raises ``UnansweredCall`` if it may have
        been executed."""
        return self._call_until_answered(method, request, read, (_NotSent,))

    async def _call_until_answered(
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
        """Open a watch stream that etcd ends when its member has no leader, so that it does not
        hang.

        Raises ``Unavailable`` where no endpoint answers.
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

    async def snapshot(self, write: Callable[[bytes], object]) -> None:
        """Pass the file of one member's database to ``write``, piece by piece. Raises
        ``Unavailable`` when the member stops sending it."""
        endpoint = self.current
        over: asyncio.Future[RpcError | None] = asyncio.get_running_loop().create_future()
        failures: list[Exception] = []

        def take(message: bytes) -> None:
            try:
                write(wire.read_snapshot(message))
            except Exception as error:  # a full disk; raised below, in the caller's task
                failures.append(error)
                end(None)

        def end(error: RpcError | None) -> None:
            if not over.done():
                over.set_result(error)

        if self._options.username:
            await self._sign_in(endpoint, self._token)
        try:
            stream = await endpoint.channel.converse(
                _SNAPSHOT, b"", take, end, self._options.timeout, self._token, last=True
            )
        except RpcError as error:
            raise explain(error, endpoint.address) from error
        try:
            ended = await over
        finally:
            stream.cancel()
        if failures:
            raise failures[0]
        if ended is not None:
            raise Unavailable(f"etcd {endpoint.address}: {ended}")

    async def version(self, endpoint: EtcdEndpoint) -> tuple[int, ...]:
        """Return the member's version; ``(0,)`` if it does not report one."""
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
        # One endpoint gets half of the time, so that a hanging member leaves time for another.
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
        except (UnansweredCall, _NotSent):
            self.leave(endpoint)
            raise
        except _TokenRefused as error:
            raise Unavailable(str(error)) from error

    async def _sign_in(self, endpoint: EtcdEndpoint, refused: Metadata) -> None:
        async with self._signing_in:
            if self._token not in ((), refused):
                return  # another call has signed in meanwhile
            request = wire.authenticate_request(self._options.username, self._options.password)
            try:
                answer = await endpoint.call(_AUTHENTICATE, request, self._options.timeout / 2, ())
                token = endpoint.understood(answer, wire.read_token)
            except UnansweredCall as error:
                raise _NotSent(str(error)) from error  # the call that needed the token was not sent
            self._token = (("token", token),)
            self._metadata = (*_WITH_LEADER, *self._token)


def explain(error: RpcError, address: str) -> StoreError:
    """Translate a failed call into a ``StoreError`` that tells whether it may have been
    executed."""
    code, text = error.code, error.text
    message = f"etcd {address}: {text or code.name}"
    if error.unsent or text == _NO_LEADER:
        return _NotSent(message)
    if code is GrpcCode.OUT_OF_RANGE:
        return HistoryGone(message) if "compacted" in text else RevisionNotReached(message)
    if "too large" in text or "larger than max" in text:
        return ValueTooLarge(message)
    if code is GrpcCode.RESOURCE_EXHAUSTED:
        return Unavailable(message)
    if code is GrpcCode.UNAUTHENTICATED or "auth store is old" in text:
        return _TokenRefused(message)
    return StoreError(message) if code in _REFUSALS else UnansweredCall(message)


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
        context = ssl.create_default_context(cafile=_readable_file(options.cafile))
        # Python 3.13 and later reject CAs that other etcd clients accept.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.set_alpn_protocols(["h2"])
        if options.certfile or options.keyfile:
            certificate = _readable_file(options.certfile or options.keyfile)
            assert certificate is not None
            context.load_cert_chain(certificate, _readable_file(options.keyfile))
    except OSError as error:
        raise StoreError(f"etcd: {error}") from error
    return context


def _readable_file(file: str) -> str | None:
    """Check that a file can be read, because the TLS library's error does not name it."""
    if not file:
        return None
    try:
        with open(file, "rb"):
            return file
    except OSError as error:
        raise StoreError(f"etcd: {file}: {error.strerror}") from error
