"""PEM block scanner: finds blocks as Go does, where the first end line after a begin line decides.

Called for CA bundles (``wire/webhooks/https.py``), certificate requests, peer certificates and
token keys. It reads a text once, because bundles come from clients and may be large.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"-----END ", b"-----"


class Block(NamedTuple):
    """A PEM block with its place in the text."""

    type: bytes
    body: bytes
    start: int
    end: int
    """Start and end offset of the block in the text."""


def blocks(text: bytes) -> Iterator[Block]:
    at = 0
    while (begin := text.find(_BEGIN, at)) >= 0:
        line_end = text.find(b"\n", begin)
        end = text.find(_END, line_end)
        if line_end < 0 or end < 0:
            return
        label = text[begin + len(_BEGIN) : line_end].rstrip()
        closing = _END + label
        at = line_end
        if label.endswith(_DASHES) and text.startswith(closing, end):
            at = end + len(closing)
            body = text[line_end + 1 : end].removesuffix(b"\n")
            yield Block(label.removesuffix(_DASHES), body, begin, at)
        elif label.endswith(_DASHES):
            at = end + len(_END)
