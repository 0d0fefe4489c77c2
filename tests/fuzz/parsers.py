"""Every reader of clients' bytes as one function of bytes: it returns, or raises what it says.

Used by hypothesis (``tests/robust/test_parsers.py``) and, guided by coverage, by
``python -m tests.fuzz.guided``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from typing import Any, NamedTuple

from instar.base.errors import ApiError
from instar.kube.api.encoding.json_text import TooDeep, decode, encode
from instar.kube.api.encoding.object_text import MalformedObject
from instar.kube.api.encoding.yaml_text import read_yaml, write_yaml
from instar.kube.api.jsonpath import JsonPathError, compile_path
from instar.kube.api.label_selector import selector_of
from instar.kube.api.patch_types import PatchType
from instar.kube.api.selectors import parse_field_selector, parse_label_selector
from instar.kube.apply.managed_fields import BadManagedFields
from instar.kube.apply.managed_fields import decode as decode_managers
from instar.kube.cel.engine import analyse, prepare
from instar.kube.cel.syntax.issues import BadExpression, BadProgram
from instar.kube.cel.time_text import parse_duration, parse_timestamp
from instar.kube.cel.types import DYN
from instar.kube.cel.values import CelError, CostExceeded
from instar.kube.patches.documents import read_patch
from instar.kube.protobuf.envelope import decode_object
from instar.kube.protobuf.errors import ProtobufError, UnknownKind
from instar.kube.quantities import QuantityError, canonical_quantity
from instar.kube.schema.formats.named import FORMATS
from instar.kube.schema.validation.patterns import PatternError, compile_pattern
from instar.server.http.http1_request import RequestReader
from instar.server.rest.bodies import parse
from instar.server.rest.deadlines import duration
from instar.server.rest.negotiate import YAML
from tests.fuzz.material import CEL, JSONPATHS, SAMPLE, SELECTORS

_SAMPLE = encode(SAMPLE)
_LIMIT = 100_000
"""Of a CEL expression's cost."""
_SOON = 60.0


class Parser(NamedTuple):
    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    tokens: str
    """Words of its language: a key of ``mutation.TOKENS``."""
    seeds: tuple[bytes, ...]


def _texts(function: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: function(data.decode("utf-8", "replace"))


def _json(data: bytes) -> None:
    value = decode(data)
    again = decode(encode(value))
    assert again == value or value != value


def _yaml(data: bytes) -> None:
    value, _ = read_yaml(data)
    write_yaml(value)


def _jsonpath(text: str) -> None:
    compile_path(text)(SAMPLE)


def _cel(text: str) -> None:
    runner = prepare(analyse(text, {"self": DYN, "oldSelf": DYN}), ("self", "oldSelf"))
    with contextlib.suppress(CelError, CostExceeded):
        runner.run((SAMPLE["spec"], SAMPLE["spec"]), _LIMIT, monotonic() + _SOON)


class _Nobody:
    def full(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Callable[..., bool]:
        return lambda *given: True


def _http(data: bytes) -> None:
    whole, pieces = RequestReader(_Nobody()), RequestReader(_Nobody())  # type: ignore[arg-type]
    whole.feed(data)
    for at in range(0, min(len(data), 2000), 7):
        pieces.feed(data[at : at + 7])


def _patch(kind: PatchType) -> Callable[[bytes], object]:
    return lambda data: read_patch(data, kind, "Strict").apply(decode(_SAMPLE))


def _managers(data: bytes) -> None:
    value: Any = decode(data)
    decode_managers(value if isinstance(value, list) else [value])


def _formats(text: str) -> None:
    for accepts in FORMATS.values():
        accepts(text)


def _times(text: str) -> None:
    parse_duration(text)
    parse_timestamp(text)
    with contextlib.suppress(ValueError):
        datetime.fromisoformat(text).astimezone(UTC)


_ENTRY = (
    b'[{"manager":"m","operation":"Apply","apiVersion":"v1","time":"2024-01-01T00:00:00Z",'
    b'"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"k:{\\"a\\":1}":{},"v:1":{},"i:0":{}}}}]'
)
_HTTP = (
    b"POST /a?b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;a\r\n{}\r\n0\r\n\r\n",
    b"GET http://x/a HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 0\r\n\r\n",
    b"PUT / HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabcGET / HTTP/1.1\r\n\r\n",
)
_PROTOBUF = bytes.fromhex("6b3873000a0f0a0276311209") + b"Namespace\x12\x0a\x0a\x08\x0a\x06ns-min"

PARSERS: dict[str, Parser] = {
    "json": Parser(_json, (ValueError, TooDeep), "json", (_SAMPLE, b'[1e400,"\\ud800"]')),
    "body": Parser(lambda data: parse(data, ""), (MalformedObject, ApiError), "json", (_SAMPLE,)),
    "yaml": Parser(
        _yaml, (ValueError,), "yaml",
        (write_yaml(SAMPLE), b"a: &x {b: 1}\nc: {<<: *x}\nd: [1:1, 0x1, ~, !!binary YQ==]\n")),
    "yaml-body": Parser(
        lambda data: parse(data, YAML), (MalformedObject, ApiError), "yaml", (write_yaml(SAMPLE),)),
    "jsonpath": Parser(
        _texts(_jsonpath), (JsonPathError,), "jsonpath", tuple(t.encode() for t in JSONPATHS)),
    "labels": Parser(_texts(parse_label_selector), (ApiError,), "selector",
                     tuple(text.encode() for text in SELECTORS)),
    "fields": Parser(_texts(parse_field_selector), (ApiError,), "selector",
                     tuple(text.encode() for text in SELECTORS)),
    "labelselector": Parser(
        lambda data: selector_of(decode(data)), (ValueError, ApiError), "json",
        (b'{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"In","values":[]}]}',)),
    "cel": Parser(_texts(_cel), (BadExpression, BadProgram), "cel", tuple(t.encode() for t in CEL)),
    "protobuf": Parser(
        decode_object, (ProtobufError, UnknownKind), "number", (_PROTOBUF,)),
    "http": Parser(_http, (), "path", _HTTP),
    "duration": Parser(_texts(duration), (ApiError,), "number", (b"1h2m3.5s", b"-1ms", b"1us")),
    "times": Parser(_texts(_times), (), "number", (b"1h", b"2024-01-01T00:00:00.5+01:00")),
    "quantity": Parser(
        _texts(canonical_quantity), (QuantityError,), "number", (b"1.5Ki", b"12e3", b"-0.001n")),
    "formats": Parser(
        _texts(_formats), (), "number",
        (b"10.0.0.1/8", b"::1", b"a@b.c", b"P1D", b"2024-01-01T00:00:00Z", b"1h", b"https://a/b")),
    "pattern": Parser(
        _texts(compile_pattern), (PatternError,), "regex", (b"^[a-z]+(a|b)*$", b"(?i)\\pL{1,3}")),
    "merge-patch": Parser(_patch(PatchType.MERGE), (ApiError,), "json", (b'{"spec":{"a":null}}',)),
    "json-patch": Parser(
        _patch(PatchType.JSON), (ApiError,), "json",
        (b'[{"op":"add","path":"/spec/tags/-","value":1},{"op":"move","from":"/spec/name","path":"/b"}]',)),
    "strategic-patch": Parser(
        _patch(PatchType.STRATEGIC), (ApiError,), "json",
        (b'{"metadata":{"finalizers":["a"],"$deleteFromPrimitiveList/finalizers":["b"]}}',)),
    "managers": Parser(_managers, (BadManagedFields, ValueError, TooDeep), "json", (_ENTRY,)),
}  # fmt: skip


def attempt(parser: Parser, data: bytes) -> None:
    """Raises where the parser does what it must not."""
    with contextlib.suppress(*parser.refusals):
        parser.read(data)
