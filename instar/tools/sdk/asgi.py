"""The webhook as an ASGI application, served by ``instar webhook`` or mounted in another app.

It does HTTP only: ``conversion_reviews.py`` answers ConversionReviews, ``admission_reviews.py``
AdmissionReviews. Each admission handler has its own path; every other path accepts a
ConversionReview by POST, because the CRD chooses the path.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from instar.base.errors import (
    ApiError,
    BadRequest,
    Internal,
    MethodNotAllowed,
    NotFound,
    RequestTooLarge,
    UnsupportedMediaType,
)
from instar.base.metrics import CONTENT_TYPE
from instar.tools.sdk.admission import Admission
from instar.tools.sdk.admission_reviews import AdmissionReviewHandler
from instar.tools.sdk.conversion_reviews import ConversionAnswer, ConversionReviewHandler
from instar.tools.sdk.converter import BuiltConverter, Converter
from instar.tools.sdk.metrics import ConversionWebhookMetrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DEFAULT_MAX_BODY = 128 * 1024 * 1024
_INLINE_BODY = 64 * 1024

_log = logging.getLogger(__name__)


class _ClientGone(Exception):
    """The client has disconnected."""


class ConversionApp:
    """``ConversionApp(crontab)`` or ``ConversionApp([crontab, widget])``.

    Large ConversionReviews are converted on one worker thread: health checks stay quick behind
    them, and an author's code never runs twice at the same time.
    """

    def __init__(
        self,
        converters: BuiltConverter | Converter | Iterable[BuiltConverter | Converter],
        *,
        admissions: Sequence[Admission] = (),
        max_body: int = DEFAULT_MAX_BODY,
    ) -> None:
        self._handler = ConversionReviewHandler(_built(converters))
        self._admissions = AdmissionReviewHandler(admissions)
        self._metrics = ConversionWebhookMetrics()
        self._max_body = max_body
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="instar-convert")
        self._turn = asyncio.Lock()
        self.draining = False
        """Set to answer ``/readyz`` with 503 while connections still finish."""

    def close(self) -> None:
        self._worker.shutdown(wait=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            raise RuntimeError(f"a conversion webhook does not speak {scope['type']}")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                self.close()
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if scope["method"] in ("GET", "HEAD") and path in _PAGES:
            await _respond(send, *_PAGES[path](self))
            return
        self._metrics.started()
        try:
            body = await self._review(scope, receive)
            await _respond(send, 200, b"application/json", body)
        except _ClientGone:
            return
        except ApiError as error:
            self._metrics.refused(error.code)
            status = orjson.dumps(error.to_status())
            await _respond(send, error.code, b"application/json", status)
        finally:
            self._metrics.ended()

    async def _review(self, scope: Scope, receive: Receive) -> bytes:
        _check_request(scope)
        body = await _read(scope, receive, self._max_body)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if self._admissions.knows(path):
            return await self._admission(path, body)
        began = time.perf_counter()
        answer = await self._answer(body)
        self._metrics.answered(answer, time.perf_counter() - began)
        if not answer.succeeded:
            _log.warning("review refused: %s", answer.error)
        return answer.body

    async def _admission(self, path: str, body: bytes) -> bytes:
        try:
            async with self._turn:
                if len(body) <= _INLINE_BODY:
                    return self._admissions.answer(path, body)
                loop = asyncio.get_running_loop()
                answer = self._admissions.answer
                return await loop.run_in_executor(self._worker, answer, path, body)
        except Internal as error:
            _log.warning("admission failed: %s", error)
            raise

    async def _answer(self, body: bytes) -> ConversionAnswer:
        async with self._turn:
            if len(body) <= _INLINE_BODY:
                return self._handler.answer(body)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._worker, self._handler.answer, body)

    def _health(self) -> tuple[int, bytes, bytes]:
        return 200, b"text/plain; charset=utf-8", b"ok"

    def _ready(self) -> tuple[int, bytes, bytes]:
        code, text = (503, b"stopping") if self.draining else (200, b"ok")
        return code, b"text/plain; charset=utf-8", text

    def _exposition(self) -> tuple[int, bytes, bytes]:
        return 200, CONTENT_TYPE.encode(), self._metrics.page()


_PAGES: dict[str, Callable[[ConversionApp], tuple[int, bytes, bytes]]] = {
    "/healthz": ConversionApp._health,
    "/livez": ConversionApp._health,
    "/readyz": ConversionApp._ready,
    "/metrics": ConversionApp._exposition,
}


def _built(
    given: BuiltConverter | Converter | Iterable[BuiltConverter | Converter],
) -> Sequence[BuiltConverter]:
    several = [given] if isinstance(given, BuiltConverter | Converter) else list(given)
    return [each.build() if isinstance(each, Converter) else each for each in several]


def _check_request(scope: Scope) -> None:
    if scope["method"] in ("GET", "HEAD"):
        raise NotFound(f"nothing at {scope['path']}; reviews are sent by POST")
    if scope["method"] != "POST":
        raise MethodNotAllowed(f"{scope['method']} is not supported; reviews are sent by POST")
    content_type = _header(scope, b"content-type").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise UnsupportedMediaType(
            f"a review is sent as application/json, not {content_type or 'without a type'!r}"
        )


def _header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return ""


async def _read(scope: Scope, receive: Receive, most: int) -> bytes:
    announced = _header(scope, b"content-length")
    if announced.isdecimal() and int(announced) > most:
        raise RequestTooLarge(f"limit is {most} bytes")
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > most:
            raise RequestTooLarge(f"limit is {most} bytes")
        chunks.append(chunk)
        if not message.get("more_body", False):
            break
    if not size:
        raise BadRequest("the request has no body")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _respond(send: Send, code: int, content_type: bytes, body: bytes) -> None:
    headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
