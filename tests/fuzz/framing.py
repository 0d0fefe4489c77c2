"""HTTP as nobody should write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tests.fuzz import mutation
from tests.fuzz.mutation import number


def chunked(
    chance: Random, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes
) -> bytes:
    """Well framed, in pieces of any size, with all that may stand between them."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    data = "\r\n".join([*lines, "Transfer-Encoding: chunked"]).encode() + b"\r\n\r\n"
    at = 0
    while at < len(body):
        piece = body[at : at + number(chance, len(body)) + 1]
        extension = b";a=b" if chance.random() < 0.2 else b""
        data += b"%x%s\r\n%s\r\n" % (len(piece), extension, piece)
        at += len(piece)
    trailers = b"X-Trailer: y\r\n" * number(chance, 3) if chance.random() < 0.2 else b""
    return data + b"0\r\n" + trailers + b"\r\n"


def _cut(chance: Random, data: bytes) -> bytes:
    return data[: chance.randint(0, len(data))]


def _bits(chance: Random, data: bytes) -> bytes:
    head, end, body = data.partition(b"\r\n\r\n")
    return mutation.binary(chance, head) + end + body


def _line_ends(chance: Random, data: bytes) -> bytes:
    return data.replace(b"\r\n", chance.choice((b"\n", b"\r", b"\r\r\n", b"\r\n ", b"\x00\r\n")))


def _both_lengths(chance: Random, data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\r\nTransfer-Encoding: chunked\r\n", 1)


def _more_lengths(chance: Random, data: bytes) -> bytes:
    wrong = chance.choice((b"0", b"-1", b"1e3", b"5, 5", b"9" * 30, b"", b"+5", b"0x10", b" 7 "))
    return data.replace(b"\r\n", b"\r\nContent-Length: " + wrong + b"\r\n", 1)


def _long_header(chance: Random, data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\r\nX: " + b"y" * number(chance, 200_000) + b"\r\n", 1)


def _many_headers(chance: Random, data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\r\n" + b"X: y\r\n" * number(chance, 20_000), 1)


def _version(chance: Random, data: bytes) -> bytes:
    wrong = (b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"", b"HTTP/1.1 x", b"HTTP/11")
    return data.replace(b"HTTP/1.1", chance.choice(wrong), 1)


def _upgrade(chance: Random, data: bytes) -> bytes:
    wanted = chance.choice((b"websocket", b"h2c", b"SPDY/3.1", b"x"))
    return data.replace(b"\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: " + wanted + b"\r\n", 1)


def _not_http(chance: Random, data: bytes) -> bytes:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    return chance.choice((preface, b"\x16\x03\x01", b"", b"\r\n" * 500, chance.randbytes(300)))


def _chunks(chance: Random, data: bytes) -> bytes:
    head = data.partition(b"\r\n\r\n")[0].rpartition(b"\r\nContent-Length")[0]
    wrong = (
        b"zz",
        b"-1",
        b"f" * 20,
        b"0;",
        b"5;" + b"a" * 70_000,
        b"0\r\nX: y",
        b" 5",
        b"5 ",
        b"0x5",
    )
    chunk = chance.choice(wrong) + b"\r\nhello\r\n0\r\n\r\n"
    return head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk


def _target(chance: Random, data: bytes) -> bytes:
    method, _, rest = data.partition(b" ")
    path, _, rest = rest.partition(b" ")
    wrong = (b"*", b"http://x" + path, b"//x" + path, b"x:443", b"\xff\xfe", path + b" " + path)
    return method + b" " + chance.choice(wrong) + b" " + rest


_WAYS: tuple[Callable[[Random, bytes], bytes], ...] = (
    _cut, _bits, _bits, _line_ends, _both_lengths, _more_lengths, _long_header, _many_headers,
    _version, _upgrade, _not_http, _chunks, _target,
)  # fmt: skip


def broken(chance: Random, data: bytes) -> bytes:
    return chance.choice(_WAYS)(chance, data)
