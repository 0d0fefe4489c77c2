"""gRPC status codes and ``RpcError``, the error of a failed call.

Raised by the modules of this package, interpreted by the etcd and KMS clients.
"""

from __future__ import annotations

from enum import IntEnum
from urllib.parse import unquote

from instar.wire.rpc.headers import Headers


class GrpcCode(IntEnum):
    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class RpcError(Exception):
    """A call without an answer, or with an error status.

    ``unsent`` guarantees that no server has executed or will execute it; otherwise it may have been
    executed.
    """

    def __init__(self, code: GrpcCode, text: str, *, unsent: bool = False) -> None:
        super().__init__(text or code.name)
        self.code, self.text, self.unsent = code, text, unsent

    def copy(self, *, unsent: bool = False) -> RpcError:
        """Return a copy, since each of many failed calls raises its own."""
        return RpcError(self.code, self.text, unsent=self.unsent or unsent)


_BY_HTTP = {
    "400": GrpcCode.INTERNAL,
    "401": GrpcCode.UNAUTHENTICATED,
    "403": GrpcCode.PERMISSION_DENIED,
    "404": GrpcCode.UNIMPLEMENTED,
    "429": GrpcCode.UNAVAILABLE,
    "502": GrpcCode.UNAVAILABLE,
    "503": GrpcCode.UNAVAILABLE,
    "504": GrpcCode.UNAVAILABLE,
}
OK_HEAD: Headers = ((":status", "200"), ("content-type", "application/grpc"))
"""Headers with which nearly all answers begin."""
_OK_TRAILERS: Headers = (("grpc-status", "0"), ("grpc-message", ""))


def refused_head(headers: Headers) -> RpcError | None:
    """Return why the headers are not a gRPC answer; ``None`` if they are."""
    found = dict(headers)
    status = found.get(":status", "")
    if status != "200" and "grpc-status" not in found:
        code = _BY_HTTP.get(status, GrpcCode.UNKNOWN)
        return RpcError(code, f"the server answers with HTTP status {status or 'none'}")
    if not found.get("content-type", "").startswith("application/grpc"):
        return RpcError(GrpcCode.UNKNOWN, "the server's answer is not gRPC's")
    return None


def read_trailers(headers: Headers) -> RpcError | None:
    """Return the error of the trailers; ``None`` on success."""
    if headers == _OK_TRAILERS:
        return None
    found = dict(headers)
    try:
        code = GrpcCode(int(found["grpc-status"]))
    except (KeyError, ValueError):
        return RpcError(GrpcCode.UNKNOWN, "the server's answer ends without a status")
    return RpcError(code, unquote(found.get("grpc-message", ""))) if code else None
