"""Parses one HTTP/1.1 response from bytes, within size limits.

Used by ``http1_client.py``; independent of sockets.
"""

from __future__ import annotations

from typing import NamedTuple

import httptools

from instar.wire.webhooks.http1_encoding import BrokenEncoding, Unpacker, unpacker_for

MOST_HEAD = 64 << 10
"""Limit of header bytes, and of bytes in a row without any content."""
_SWITCHING_PROTOCOLS = 101


class HttpResponse(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    """By lower-case name; of a repeated header the first."""
    body: bytes


class AnswerFailed(Exception):
    """The received bytes are not a usable response."""


class MalformedResponse(AnswerFailed):
    """The bytes are not HTTP."""


class CutShort(AnswerFailed):
    """The head was valid, but the content is broken or ended early."""


class ResponseTooLarge(AnswerFailed):
    """The content is larger than the caller's limit."""


class AnswerReader:
    """Parser of one response. The callbacks are httptools'; their errors come out of ``feed``."""

    def __init__(self, most_bytes: int) -> None:
        self.begun = False
        """Whether any byte arrived."""
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
        # As lenient as other clients: some webhooks are sloppy, and smuggling is no risk here.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: bytes) -> bool:
        """Parse more bytes; return whether the response is complete. Raises ``AnswerFailed``."""
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
        """Handle end of stream; return whether it completes the response."""
        framed = b"content-length" in self._headers or b"transfer-encoding" in self._headers
        if self._head_is_read and not framed:
            self._check_packing()
            self.complete = True
        return self.complete

    def broken(self) -> AnswerFailed:
        """Return the error for a response that fails at this point."""
        return CutShort() if self._head_is_read else MalformedResponse()

    @property
    def head_is_read(self) -> bool:
        return self._head_is_read

    @property
    def is_plain(self) -> bool:
        """Return whether the content is known to be as long as it is received."""
        return self._head_is_read and self._unpacker is None

    def answer(self) -> HttpResponse:
        """Return the complete response. Call once."""
        del self._parser  # breaks the reference cycle with the parser
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return HttpResponse(self._status, self._headers, body)

    # --- httptools -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.complete:
            raise MalformedResponse  # an unrequested second response must not mix with this one

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value) + 4  # colon, blank and line end
        if self._head_size > MOST_HEAD:
            raise self.broken()
        self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        status = self._status = self._parser.get_status_code()
        if status < 200 and status != _SWITCHING_PROTOCOLS:
            return  # an interim response such as "100 Continue"; the final one follows
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
