"""gRPC client of a KMS v2 plugin, over its unix socket.

Called by ``kms.py``, which decides what to encrypt and what the answers mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from instar.wire.rpc.channel import GrpcChannel
from instar.wire.rpc.status import GrpcCode, RpcError
from instar.wire.storage.encryption.ciphers import DecryptionFailed
from instar.wire.storage.encryption.envelope import annotation_fields, read_annotation
from instar.wire.storage.protobuf_fields import UNREADABLE, as_bytes, bytes_field, fields
from instar.wire.storage.store import Unavailable

T = TypeVar("T")
_SERVICE = "/v2.KeyManagementService/"
_UNREACHABLE_CODES = (
    GrpcCode.UNAVAILABLE,
    GrpcCode.DEADLINE_EXCEEDED,
    GrpcCode.CANCELLED,
    GrpcCode.RESOURCE_EXHAUSTED,
)


class Status(NamedTuple):
    """Response of a KMS plugin to ``Status``."""

    version: str
    healthz: str
    key_id: str


class Wrapped(NamedTuple):
    """A seed that the plugin has encrypted, with its key id and annotations."""

    ciphertext: bytes
    key_id: str
    annotations: Mapping[str, bytes]


class Plugin(Protocol):
    """A KMS plugin. Calls raise ``Unavailable`` where a retry may help, else
    ``DecryptionFailed``."""

    async def status(self) -> Status: ...

    async def encrypt(self, plain: bytes, uid: str) -> Wrapped: ...

    async def decrypt(self, wrapped: Wrapped, uid: str) -> bytes: ...

    async def close(self) -> None: ...


class GrpcPlugin:
    """Calls a KMS v2 plugin over its socket."""

    def __init__(self, socket: str, timeout: float) -> None:
        self._socket = socket
        self._timeout = timeout
        target = f"unix-abstract:{socket[2:]}" if socket.startswith("/@") else f"unix:{socket}"
        self._channel = GrpcChannel(target)

    async def status(self) -> Status:
        return await self._call("Status", b"", _read_status)

    async def encrypt(self, plain: bytes, uid: str) -> Wrapped:
        request = bytes_field(1, plain) + bytes_field(2, uid.encode())
        return await self._call("Encrypt", request, _read_wrapped)

    async def decrypt(self, wrapped: Wrapped, uid: str) -> bytes:
        request = [
            bytes_field(1, wrapped.ciphertext),
            bytes_field(2, uid.encode()),
            bytes_field(3, wrapped.key_id.encode()),
            *annotation_fields(4, wrapped.annotations),
        ]
        return await self._call("Decrypt", b"".join(request), _read_plain)

    async def close(self) -> None:
        await self._channel.close()

    async def _call(self, method: str, request: bytes, read: Callable[[bytes], T]) -> T:
        """Return the answer as ``read`` reads it; what that cannot read is a failure of the
        plugin."""
        try:
            return read(await self._channel.call(_SERVICE + method, request, self._timeout))
        except RpcError as error:
            text = f"rpc error: code = {error.code.name} desc = {error.text} ({self._socket})"
            if error.code in _UNREACHABLE_CODES:
                raise Unavailable(text) from error
            raise DecryptionFailed(text) from error
        except UNREADABLE as error:
            raise DecryptionFailed(
                f"the KMS plugin's answer cannot be read ({self._socket})"
            ) from error


def _read_status(answer: bytes) -> Status:
    found = {1: "", 2: "", 3: ""}
    for number, value in fields(answer):
        if number in found:
            found[number] = as_bytes(value).decode()
    return Status(*found.values())


def _read_wrapped(answer: bytes) -> Wrapped:
    ciphertext, key_id, annotations = b"", "", dict[str, bytes]()
    for number, value in fields(answer):
        if number == 1:
            ciphertext = as_bytes(value)
        elif number == 2:
            key_id = as_bytes(value).decode()
        elif number == 3:
            name, note = read_annotation(value)
            annotations[name] = note
    return Wrapped(ciphertext, key_id, annotations)


def _read_plain(answer: bytes) -> bytes:
    return next((as_bytes(value) for number, value in fields(answer) if number == 1), b"")
