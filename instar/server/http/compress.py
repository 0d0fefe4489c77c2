"""gzip compression of large responses.

``server/app.py`` calls it after a handler has answered. Small responses stay as they are: for them
the network costs less than the processor.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable

from instar.base import offload
from instar.base.errors import TooManyRequests
from instar.server.http.messages import Request, Response

LEAST = 128 << 10
"""Bytes; a response that is not larger is sent as it is."""
MOST = 128 << 20
"""Bytes; a larger response is sent uncompressed, as a compressed one is held in memory."""
_GZIP_LEVEL = 1
_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS


async def compress(request: Request, response: Response) -> None:
    """Compress a large response, in place and in a thread, if the client accepts gzip."""
    if response.stream is not None or not LEAST < response.length <= MOST:
        return
    if not _accepts_gzip(request.header(b"accept-encoding")):
        return
    if any(name == b"content-encoding" for name, _ in response.headers):
        return
    chunks = response.chunks
    try:
        packed = await offload.run_in_thread(lambda: _gzip(chunks))
    except TooManyRequests:
        return  # every thread is busy: the response is sent uncompressed
    except asyncio.CancelledError:
        if not request.expired:
            raise
        return  # the deadline has passed: the response is sent uncompressed
    response.chunks, response.length, response.held = (packed,), len(packed), len(packed)
    response.headers += ((b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding"))


def _gzip(chunks: Iterable[bytes]) -> bytes:
    """Compress piece by piece: the chunks may be made while they are read."""
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW_BITS)
    return b"".join([*map(packer.compress, chunks), packer.flush()])


def _accepts_gzip(accepted: str) -> bool:
    for clause in accepted.lower().split(","):
        coding, _, parameter = clause.partition(";")
        if coding.strip() in ("gzip", "*"):
            return parameter.replace(" ", "").rstrip("0.") != "q="
    return False
