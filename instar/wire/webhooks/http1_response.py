"""Reads one HTTP/1.1 answer out of bytes, within limits. Knows no sockets and no webhooks."""

from __future__ import annotations

from typing import NamedTuple

import httptools

from instar.wire.webhooks.http1_encoding import BrokenEncoding, Unpacker, unpacker_for

MOST_HEAD = 64 << 10
"""Bytes of headers, and bytes that may come without a byte of content among them."""
_SWITCHING_PROTOCOLS = 101


class HttpResponse(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    """By lower-case name; of a repeated header the first."""
    body: bytes


class AnswerFailed(Exception):
    """What arrived is no usable answer."""


class MalformedResponse(AnswerFailed):
    """It is not HTTP."""


class CutShort(AnswerFailed):
    """It began well, but its content is broken or ended early."""


class ResponseTooLarge(AnswerFailed):
    """Its content is larger than the caller takes."""


class AnswerReader:
    """One answer. The callbacks are httptools'; what they raise comes out of ``feed``."""

    def __init__(self, most_bytes: int) -> None:
        self.begun = False
        """Whether anything came at all."""
        self.complete = False
        self.reusable = False
        """Whether another request may follow on the same connection."""
        self._most_bytes = most_bytes
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._head_is_read = False
        self._head_size = 0
        self._quiet = 0
        self._received = 0
        self._size = 0
        self._pieces: list[bytes] = []
        self._unpacker: Unpacker | None = None
        self._parser = httptools.HttpResponseParser(self)
        # What other clients let pass: there are sloppy webhooks, and nobody to be smuggled past.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: bytes) -> bool:
        """Whether the answer is complete now. Raises ``AnswerFailed``."""
        self.begun = True
        self._quiet += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.reusable = False
        except httptools.HttpParserCallbackError as error:
            if not self.complete:
                raise error.__context__ or error from None
            self.reusable = False
        except httptools.HttpParserError as error:
            if not self.complete:
                raise self.broken() from error
            self.reusable = False
        if self._quiet > MOST_HEAD and not self.complete:
            raise self.broken()
        return self.complete

    def end(self) -> bool:
        """The other side will send no more: whether that completes the answer."""
        framed = b"content-length" in self._headers or b"transfer-encoding" in self._headers
        if self._head_is_read and not framed:
            self._check_packing()
            self.complete = True
        return self.complete

    def broken(self) -> AnswerFailed:
        """How to call an answer that goes wrong at this point."""
        return CutShort() if self._head_is_read else MalformedResponse()

    @property
    def head_is_read(self) -> bool:
        return self._head_is_read

    def answer(self) -> HttpResponse:
        """Once, when it is complete."""
        del self._parser  # it refers back to this reader, which only the collector would find out
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return HttpResponse(self._status, self._headers, body)

    # --- httptools -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.complete:
            raise MalformedResponse  # an unrequested second response must not mix with this one

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value) + 4  # the colon, the blank, the line's end
        if self._head_size > MOST_HEAD:
            raise self.broken()
        self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        status = self._status = self._parser.get_status_code()
        if status < 200 and status != _SWITCHING_PROTOCOLS:
            return  # the likes of "100 Continue": the real answer follows
        self._head_is_read = True
        encoding = self._headers.get(b"content-encoding")
        if encoding is not None:
            self._unpacker = unpacker_for(encoding)

    def on_body(self, data: bytes) -> None:
        self._quiet = 0
        self._received += len(data)
        if self._unpacker is not None:
            try:
                data = self._unpacker.unpack(data, self._most_bytes - self._size + 1)
            except BrokenEncoding as error:
                raise CutShort from error
        self._size += len(data)
        if self._size > self._most_bytes or self._received > self._most_bytes:
            raise ResponseTooLarge
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        if not self._head_is_read:
            self._headers.clear()
            return
        self._check_packing()
        self.complete = True
        self.reusable = self._parser.should_keep_alive()

    def _check_packing(self) -> None:
        if self._unpacker is not None and not self._unpacker.between_streams:
            raise CutShort
