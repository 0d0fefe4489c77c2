"""Interprets a webhook's HTTP status: the body of a success, or an error as a Go client words it.

Called by ``transport.py`` and ``https.py``. The functions do no I/O: they take a reply and return a
body or raise ``CallFailed``.
"""

from __future__ import annotations

from typing import Any

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import go_quote
from instar.wire.webhooks.failure import CallFailed

MOST_TEXT = 2048

_FIXED_TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, "
    "but may still be processing the request",
}
_TEXT_OF_THE_SERVER = (403, 415)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Response of a webhook: status, body, and the headers that its errors depend on."""

    status: int
    content_type: str
    body: bytes
    retry_after: str = ""
    location: str = ""

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status <= 206


def answer_in(reply: HttpReply) -> bytes:
    """Return the body of a successful reply; raise ``CallFailed`` for any other."""
    if reply.succeeded and not reply.body:
        raise CallFailed(
            f"0-length response with status code: {reply.status} "
            f"and content type: {reply.content_type}"
        )
    told = _status_message(reply)
    if told is None and reply.succeeded:
        return reply.body
    raise CallFailed(
        told if told is not None else _generic_message(reply),
        advice=_advice(reply),
        unreachable=seconds_to_retry(reply) is not None,
        code=reply.status,
    )


def seconds_to_retry(reply: HttpReply) -> int | None:
    """Return the seconds of ``Retry-After``; None if the reply requests no retry."""
    if reply.status != 429 and reply.status < 500:
        return None
    text = reply.retry_after.strip()
    return int(text) if text.isascii() and text.isdigit() else None


def _status_message(reply: HttpReply) -> str | None:
    """Return the message of a failed ``Status`` body, which a Go client prefers."""
    if b'"Status"' not in reply.body[:MOST_TEXT]:
        return None
    try:
        status: Any = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        return None
    if status.get("apiVersion") != "v1" or status.get("status") == "Success":
        return None
    message = status.get("message")
    return message if isinstance(message, str) and message else "unknown"


def _generic_message(reply: HttpReply) -> str:
    if reply.status in _FIXED_TEXTS:
        return _FIXED_TEXTS[reply.status]
    said = _body_text(reply)
    if reply.status in _TEXT_OF_THE_SERVER:
        return said
    if reply.status >= 500:
        return (
            f"an error on the server ({go_quote(said)}) has prevented the request from succeeding"
        )
    return (
        f"the server responded with the status code {reply.status} "
        "but did not return more information"
    )


def _body_text(reply: HttpReply) -> str:
    media_type = reply.content_type.partition(";")[0].strip().lower()
    if media_type and not media_type.startswith("text/"):
        return "unknown"
    return reply.body[:MOST_TEXT].decode("utf-8", "replace").strip()


def _advice(reply: HttpReply) -> str:
    if reply.location:
        return (
            f"the webhook redirects to {reply.location}; redirects are not followed, "
            "write that address into the CRD's clientConfig if it is right"
        )
    if reply.status == 404:
        return "check the path in the CRD's clientConfig"
    if reply.status in (401, 403):
        return "the webhook wants credentials; start the server with a webhook client certificate"
    return f"the webhook answered HTTP {reply.status}; look at its log"
