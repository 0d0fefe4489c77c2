"""A KMS plugin that answers wrongly: writes are refused and health says so, and when it answers
rightly again everything goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from instar.server.lifecycle import encryption_setup
from instar.wire.storage.protobuf_fields import bytes_field
from tests.encryption.kms_plugin import KmsPlugin
from tests.encryption.test_live import FOOS, PLAIN, encrypted, lying, make
from tests.support.crds import loose_crd
from tests.support.server import live_server
from tests.support.waiting import eventually

Answer = Callable[[Any, Any], bytes]
"""Of a plugin and the context of a call."""


class FaultyPlugin(KmsPlugin):
    """Answers one of its calls by ``fault`` while there is one."""

    def __init__(self, socket: Path) -> None:
        super().__init__(socket)
        self.fault: tuple[str, Answer] | None = None
        self.released = threading.Event()

    def _answer(self, name: str, request: bytes, context: Any) -> bytes:
        if self.fault is not None and self.fault[0] == name:
            return self.fault[1](self, context)
        rightly: bytes = getattr(KmsPlugin, f"_{name.lower()}")(self, request, context)
        return rightly

    def _status(self, request: bytes, context: Any) -> bytes:
        return self._answer("Status", request, context)

    def _encrypt(self, request: bytes, context: Any) -> bytes:
        return self._answer("Encrypt", request, context)

    def _decrypt(self, request: bytes, context: Any) -> bytes:
        return self._answer("Decrypt", request, context)

    def _hang(self, context: Any) -> bytes:
        self.released.wait(20)
        return b""

    def _abort(self, context: Any) -> bytes:
        context.abort(grpc.StatusCode.INTERNAL, "out of order")
        return b""


def status(version: bytes = b"v2", healthz: bytes = b"ok", key_id: bytes = b"kek-1") -> Answer:
    told = (version, healthz, key_id)
    text = b"".join(bytes_field(number, value) for number, value in enumerate(told, 1))
    return lambda plugin, context: text


def wrapped(ciphertext: bytes = b"c", key_id: bytes = b"kek-1") -> Answer:
    text = bytes_field(1, ciphertext) + bytes_field(2, key_id)
    return lambda plugin, context: text


GARBAGE: Answer = lambda plugin, context: b"\xff\xff\xff"  # noqa: E731 - a row of the tables below
WRONG_TYPES: Answer = lambda plugin, context: b"\x08\x01\x10\x02"  # noqa: E731 - the same
FAULTS: dict[str, tuple[str, Answer]] = {
    "a status that is no protobuf": ("Status", GARBAGE),
    "a status of numbers": ("Status", WRONG_TYPES),
    "an empty status": ("Status", lambda plugin, context: b""),
    "another version": ("Status", status(version=b"v9")),
    "a plugin that is not well": ("Status", status(healthz=b"no")),
    "no key": ("Status", status(key_id=b"")),
    "a key of 2,000 letters": ("Status", status(key_id=b"k" * 2000)),
    "a key that is no text": ("Status", status(key_id=b"\xff\xfe")),
    "a status that fails": ("Status", FaultyPlugin._abort),
    "a status that hangs": ("Status", FaultyPlugin._hang),
    "a wrapped seed that is no protobuf": ("Encrypt", GARBAGE),
    "a wrapped seed of numbers": ("Encrypt", WRONG_TYPES),
    "an empty seed": ("Encrypt", wrapped(ciphertext=b"")),
    "a seed of 2,000 bytes": ("Encrypt", wrapped(ciphertext=b"c" * 2000)),
    "a seed without a key": ("Encrypt", wrapped(key_id=b"")),
    "an encryption that fails": ("Encrypt", FaultyPlugin._abort),
    "an encryption that hangs": ("Encrypt", FaultyPlugin._hang),
}


def kms(plugin: KmsPlugin) -> dict[str, Any]:
    given = {"apiVersion": "v2", "name": "n", "endpoint": plugin.endpoint, "timeout": "1s"}
    return {"kms": given}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_plugin_that_answers_wrongly_refuses_writes_until_it_answers_rightly(
    fault: str, tmp_path: Path
) -> None:
    with FaultyPlugin(tmp_path / "k.sock") as plugin:
        plugin.fault = FAULTS[fault]
        settings = encrypted(tmp_path / "e.yaml", kms(plugin), PLAIN, resources=("*.ex.io",))
        with live_server(
            storage=f"sqlite:{tmp_path / 's.db'}", encryption=settings, bootstrap_objects=False
        ) as server:
            server.create_crd(loose_crd("ex.io"))
            body = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "f"}}
            refused = server.request("POST", FOOS, body)
            ready = server.request("GET", "/readyz/kms-providers")
            plugin.fault = None
            plugin.released.set()
            eventually(lambda: server.request("POST", FOOS, body).status == 201)
            eventually(lambda: server.request("GET", "/readyz/kms-providers").status == 200)
            stored = lying(server, "ex.io/foos/default/f")

    assert refused.status == 503, refused.text
    assert "KMS provider n cannot be used: " in refused.json["message"]
    assert ready.status == 500
    assert stored.startswith(b"k8s:enc:kms:v2:n:")


@pytest.mark.parametrize(
    "answer",
    [GARBAGE, WRONG_TYPES, FaultyPlugin._abort, lambda plugin, context: bytes_field(1, b"short")],
    ids=["no protobuf", "numbers", "an error", "a seed of another size"],
)
def test_a_seed_that_is_not_unwrapped_hides_its_objects_only(
    answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encryption_setup, "EVERY_SECONDS", 0.2)
    url = f"sqlite:{tmp_path / 's.db'}"
    with FaultyPlugin(tmp_path / "k.sock") as plugin:
        settings = encrypted(tmp_path / "e.yaml", kms(plugin), PLAIN, resources=("foos.ex.io",))
        with live_server(storage=url, encryption=settings, bootstrap_objects=False) as server:
            server.create_crd(loose_crd("ex.io"))
            make(server, "f")
        plugin.fault = ("Decrypt", answer)
        with live_server(storage=url, encryption=settings, bootstrap_objects=False) as server:
            shown = server.request("GET", f"{FOOS}/f")
            other = server.request("GET", "/api/v1/namespaces/default")
            plugin.fault = None
            eventually(lambda: server.request("GET", f"{FOOS}/f").status == 200)

    assert shown.status in (500, 503), shown.text
    assert "Traceback" not in shown.text
    assert other.status == 200
