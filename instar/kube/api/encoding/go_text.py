"""Texts that are not UTF-8, read as Go writes them to JSON.

The readers of protobuf (``kube/protobuf``) and of CBOR (``cbor_reading.py``) decode with it.
"""

from __future__ import annotations

import codecs

GO_TEXT = "instar-go-text"
"""Error handler for texts that are not UTF-8: each bad byte becomes U+FFFD, as in Go."""


def _replace_one(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd", error.start + 1


codecs.register_error(GO_TEXT, _replace_one)
