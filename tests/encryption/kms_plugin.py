"""A KMS plugin on a unix socket, as a real one is reached: gRPC, KMS v2."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import grpc

from instar.wire.storage.protobuf_fields import as_bytes, bytes_field, fields

ANNOTATION = bytes_field(1, b"made.example.com") + bytes_field(2, b"\x00\x01")


class KmsPlugin:
    """Wraps a seed by naming its key and turning it round. Counts what it is asked."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.key_id = "kek-1"
        self.healthz = "ok"
        self.forgotten: set[str] = set()
        """Keys it does not open any more."""
        self.calls: list[str] = []
        self._server: grpc.Server | None = None

    @property
    def endpoint(self) -> str:
        return f"unix://{self.socket}"

    def __enter__(self) -> Self:
        methods = {"Status": self._status, "Encrypt": self._encrypt, "Decrypt": self._decrypt}
        handlers: dict[str, Any] = {
            name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()
        }
        self._server = grpc.server(ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v2.KeyManagementService", handlers),)
        )
        self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.stop(None).wait()
        self.socket.unlink(missing_ok=True)

    def _status(self, request: bytes, context: Any) -> bytes:
        self.calls.append("Status")
        answers = (b"v2", self.healthz.encode(), self.key_id.encode())
        return b"".join(bytes_field(number, value) for number, value in enumerate(answers, 1))

    def _encrypt(self, request: bytes, context: Any) -> bytes:
        self.calls.append("Encrypt")
        plain = dict(fields(request))[1]
        wrapped = self.key_id.encode() + b"|" + as_bytes(plain)[::-1]
        return (
            bytes_field(1, wrapped)
            + bytes_field(2, self.key_id.encode())
            + bytes_field(3, ANNOTATION)
        )

    def _decrypt(self, request: bytes, context: Any) -> bytes:
        self.calls.append("Decrypt")
        asked = dict(fields(request))
        key_id, _, turned = as_bytes(asked[1]).partition(b"|")
        assert asked[3] == key_id
        assert asked[4] == ANNOTATION
        if key_id.decode() in self.forgotten:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the key was destroyed")
        return bytes_field(1, turned[::-1])
