"""Continue tokens of paginated lists: encodes and decodes where the next page begins.

Called by ``read.py``. The format and the error texts are kube-apiserver's.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

import orjson

from instar.base.errors import BadRequest
from instar.kube.api.encoding.go_json_errors import syntax_error

TOKEN_VERSION = "meta.k8s.io/v1"


class ContinueFrom(NamedTuple):
    """Where a continued list resumes. Revision -1 means the latest state."""

    revision: int
    suffix: str


FROM_START = ContinueFrom(-1, "")


def write_token(revision: int, start: str) -> str:
    """Return the ``continue`` token of a list whose next page begins at ``start``."""
    document = orjson.dumps({"v": TOKEN_VERSION, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(document).rstrip(b"=").decode()


def _not_json(document: bytes) -> str:
    """Return Go's error text. A byte that begins no UTF-8 character is shown in hexadecimal."""
    if document and document[0] >= 0x80:
        return f"invalid character '\\x{document[0]:02x}' looking for beginning of value"
    return syntax_error(document)


def read_token(token: str) -> ContinueFrom:
    """Read a ``continue`` token of a client. Raises an ``ApiError`` if it is not valid."""
    refused = "invalid continue token: continue key is not valid"
    try:
        document = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"{refused}: illegal base64 data at input byte 0") from error
    try:
        parsed = orjson.loads(document)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"{refused}: {_not_json(document)}") from error
    if not isinstance(parsed, dict) or parsed.get("v") != TOKEN_VERSION:
        version = parsed.get("v", "") if isinstance(parsed, dict) else ""
        raise BadRequest(f"{refused}: server does not recognize this encoded version {version}")
    revision, start = parsed.get("rv", 0), parsed.get("start", "")
    if not isinstance(revision, int) or revision == 0:
        raise BadRequest(
            f"{refused}: incorrect encoded start resourceVersion (version {TOKEN_VERSION})"
        )
    if not isinstance(start, str) or not start:
        raise BadRequest(f"{refused}: encoded start key empty (version {TOKEN_VERSION})")
    plain = start.removeprefix("/")
    if any(part in ("", ".", "..") for part in plain.rstrip("\0").split("/")):
        raise BadRequest(f"{refused}: {start}")
    return ContinueFrom(revision, plain)
