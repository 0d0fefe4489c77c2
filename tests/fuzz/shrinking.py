"""The smallest requests that still do it: fewer of them, then less of the last one."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from tests.fuzz.case import Case

Hurts = Callable[[Sequence[Case]], Awaitable[bool]]


async def fewest(cases: list[Case], hurts: Hurts, deadline: float) -> list[Case]:
    """Halves, quarters and so on are left out as long as it still happens."""
    size = max(len(cases) // 2, 1)
    while time.monotonic() < deadline and len(cases) > 1:
        at, less = 0, False
        while at < len(cases) and time.monotonic() < deadline:
            rest = cases[:at] + cases[at + size :]
            if rest and await hurts(rest):
                cases, less = rest, True
            else:
                at += size
        if not less:
            if size == 1:
                break
            size = max(size // 2, 1)
    return cases


async def smallest(cases: list[Case], hurts: Hurts, deadline: float) -> list[Case]:
    """The last case with as little in it as will do."""
    *before, last = cases
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for smaller in _smaller(last):
            if time.monotonic() > deadline:
                break
            if await hurts([*before, smaller]):
                last, progress = smaller, True
                break
    return [*before, last]


def _smaller(case: Case) -> Iterator[Case]:
    head, separator, body = case.data.partition(b"\r\n\r\n")
    if not separator or case.answers != 1 or b"chunked" in head.lower():
        yield from (Case(data, case.answers) for data in _cuts(case.data))
        return
    line, *headers = head.split(b"\r\n")
    for at in range(len(headers)):
        yield _rebuilt(line, headers[:at] + headers[at + 1 :], body)
    path, mark, query = line.partition(b"?")
    if mark:
        query, _, version = query.partition(b" ")
        options = query.split(b"&")
        for at in range(len(options)):
            rest = b"&".join(options[:at] + options[at + 1 :])
            yield _rebuilt(path + (b"?" + rest if rest else b"") + b" " + version, headers, body)
        for cut in _cuts(query):
            yield _rebuilt(path + b"?" + cut + b" " + version, headers, body)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        yield from (_rebuilt(line, headers, cut) for cut in _cuts(body))
        return
    for less in _less(value):
        yield _rebuilt(
            line, headers, json.dumps(less, ensure_ascii=False).encode("utf-8", "replace")
        )


def _rebuilt(line: bytes, headers: Sequence[bytes], body: bytes) -> Case:
    kept = [text for text in headers if not text.lower().startswith(b"content-length")]
    if body:
        kept.append(b"Content-Length: %d" % len(body))
    return Case(b"\r\n".join((line, *kept)) + b"\r\n\r\n" + body)


def _cuts(data: bytes) -> Iterator[bytes]:
    size = len(data) // 2
    while size:
        for at in range(0, len(data), size):
            yield data[:at] + data[at + size :]
        size //= 2


def _less(value: Any) -> Iterator[Any]:
    """Without one member, at any depth; long texts and lists halved."""
    if isinstance(value, dict):
        for key in value:
            yield {other: value[other] for other in value if other != key}
        for key, inner in value.items():
            for less in _less(inner):
                yield {**value, key: less}
    elif isinstance(value, list):
        if len(value) > 8:
            yield value[: len(value) // 2]
            yield value[len(value) // 2 :]
        for at in range(min(len(value), 30)):
            yield value[:at] + value[at + 1 :]
        for at, inner in enumerate(value[:30]):
            for less in _less(inner):
                yield [*value[:at], less, *value[at + 1 :]]
    elif isinstance(value, str) and len(value) > 1:
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
        if len(value) < 40:
            yield value[1:]
            yield value[:-1]
