"""Protobuf requests for every built-in kind and every verb, right and wrong ones."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from random import Random

from instar.kube.facts.resources import ResourceFacts, resources
from instar.kube.protobuf.envelope import encode_object
from instar.kube.protobuf.errors import ProtobufError, UnknownKind
from tests.fuzz import mutation
from tests.fuzz.case import Case, request
from tests.fuzz.placeholders import TOKEN

PROTOBUF = "application/vnd.kubernetes.protobuf"
_MEDIA = (
    PROTOBUF, PROTOBUF, PROTOBUF, f"{PROTOBUF};stream=watch", f"{PROTOBUF};type=Table",
    "application/json", "application/yaml", "application/protobuf",
)  # fmt: skip
_ACCEPTS = (
    PROTOBUF, PROTOBUF, PROTOBUF, f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1",
    f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/json", "application/yaml", "text/nope",
)  # fmt: skip
_METHODS = ("POST", "POST", "PUT", "PATCH", "DELETE", "GET", "LIST", "DELETEALL", "WATCH")
_OPTIONS = ("DeleteOptions", "PatchOptions", "Status", "Scale", "Eviction", "Binding", "List")


@dataclass(frozen=True)
class _Message:
    path: str
    data: bytes
    parts: tuple[str, ...]


class Protobufs:
    def __init__(self) -> None:
        self._messages = [
            _Message(_path(facts), _message(facts), tuple(part.name for part in facts.subresources))
            for facts in resources()
        ]
        self._others = [message.data for message in self._messages]
        self._others += [_encoded("v1", kind) for kind in _OPTIONS]
        self._others += [_encoded("meta.k8s.io/v1", "DeleteOptions"), _encoded("x/v1", "Unknown")]

    def case(self, chance: Random) -> Case:
        message = chance.choice(self._messages)
        body = message.data if chance.random() < 0.7 else chance.choice(self._others)
        if chance.random() < 0.6:
            body = mutation.binary(chance, body)
        method, path = chance.choice(_METHODS), message.path
        query = "?dryRun=All" if chance.random() < 0.3 else ""
        if method in ("LIST", "WATCH"):
            more = "?watch=1&timeoutSeconds=1" if method == "WATCH" else ""
            return self._sent(chance, "GET", path + more, None)
        if method == "DELETEALL":
            return self._sent(chance, "DELETE", path + query, body)
        if method != "POST":
            path += "/a"
        if message.parts and chance.random() < 0.2:
            path += "/" + chance.choice(message.parts)
        return self._sent(chance, method, path + query, None if method == "GET" else body)

    def _sent(self, chance: Random, method: str, target: str, body: bytes | None) -> Case:
        headers = [("Host", "x"), ("Authorization", f"Bearer {TOKEN.decode()}")]
        headers.append(("Accept", chance.choice(_ACCEPTS)))
        if body is not None:
            headers.append(("Content-Type", chance.choice(_MEDIA)))
        return Case(request(method, target, headers, body))


def _path(facts: ResourceFacts) -> str:
    root = f"/apis/{facts.api_version}" if facts.group else f"/api/{facts.version}"
    return f"{root}{'/namespaces/default' if facts.namespaced else ''}/{facts.plural}"


def _message(facts: ResourceFacts) -> bytes:
    return _encoded(facts.api_version, facts.kind)


def _encoded(api_version: str, kind: str) -> bytes:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}
    with contextlib.suppress(ProtobufError, UnknownKind):
        return encode_object(obj)
    # k8s\0, then runtime.Unknown with its TypeMeta, and a raw object of one empty field
    names = _field(1, api_version.encode()) + _field(2, kind.encode())
    return b"k8s\x00" + _field(1, names) + _field(2, b"\n\x00")


def _field(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | 2, len(data))) + data
