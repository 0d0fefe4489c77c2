"""How a call ended: gRPC's codes, and what is known of a call that failed."""

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
    """A call that was not answered, or with a refusal.

    ``unsent`` promises that no server has carried it out and none will; without it, it may have.
    """

    def __init__(self, code: GrpcCode, text: str, *, unsent: bool = False) -> None:
        super().__init__(text or code.name)
        self.code, self.text, self.unsent = code, text, unsent

    def copy(self, *, unsent: bool = False) -> RpcError:
        """For one of many calls that end alike: each raises its own."""
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
"""How nearly all answers begin."""
_OK_TRAILERS: Headers = (("grpc-status", "0"), ("grpc-message", ""))


def refused_head(headers: Headers) -> RpcError | None:
    """Why what comes is no answer of a gRPC server; ``None``: it is one, go on reading."""
    found = dict(headers)
    status = found.get(":status", "")
    if status != "200" and "grpc-status" not in found:
        code = _BY_HTTP.get(status, GrpcCode.UNKNOWN)
        return RpcError(code, f"the server answers with HTTP status {status or 'none'}")
    if not found.get("content-type", "").startswith("application/grpc"):
        return RpcError(GrpcCode.UNKNOWN, "the server's answer is not gRPC's")
    return None


def read_trailers(headers: Headers) -> RpcError | None:
    """How the call ended; ``None`` is well."""
    if headers == _OK_TRAILERS:
        return None
    found = dict(headers)
    try:
        code = GrpcCode(int(found["grpc-status"]))
    except (KeyError, ValueError):
        return RpcError(GrpcCode.UNKNOWN, "the server's answer ends without a status")
    return RpcError(code, unquote(found.get("grpc-message", ""))) if code else None
