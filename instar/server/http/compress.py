"""gzip for answers large enough that the network costs more than the processor."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable

from instar.base import offload
from instar.base.errors import TooManyRequests
from instar.server.rest.request import Request
from instar.server.rest.responses import Response

LEAST = 128 << 10
MOST = 128 << 20
"""What is packed lies in memory until it is sent; what is not is made while it is sent."""
_LEVEL = 1
_GZIP = 16 + zlib.MAX_WBITS


async def compress(request: Request, response: Response) -> None:
    """Compress a large answer, in place, where the client can read it; in a thread."""
    if response.stream is not None or not LEAST < response.length <= MOST:
        return
    if not _reads_gzip(request.header(b"accept-encoding")):
        return
    if any(name == b"content-encoding" for name, _ in response.headers):
        return
    chunks = response.chunks
    try:
        packed = await offload.apart(lambda: _packed(chunks))
    except TooManyRequests:
        return  # there is an answer already, only larger
    except asyncio.CancelledError:
        if not request.expired:
            raise
        return  # it is late enough
    response.chunks, response.length, response.held = (packed,), len(packed), len(packed)
    response.headers += ((b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding"))


def _packed(chunks: Iterable[bytes]) -> bytes:
    """Piece by piece: the whole may be made while it is read."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return b"".join([*map(packer.compress, chunks), packer.flush()])


def _reads_gzip(accepted: str) -> bool:
    for clause in accepted.lower().split(","):
        coding, _, parameter = clause.partition(";")
        if coding.strip() in ("gzip", "*"):
            return parameter.replace(" ", "").rstrip("0.") != "q="
    return False
