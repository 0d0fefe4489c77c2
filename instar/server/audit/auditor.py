"""Auditor: records requests at each stage by the audit policy and sends events to the sinks.

``server/app.py`` calls it when a request is authenticated, decided and answered. Policy and event
text are in ``policy.py`` and ``event_text.py``; files and webhook calls in ``sinks.py``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from instar.base.errors import ApiError, Internal
from instar.base.metrics import Counter, Metric
from instar.base.supervision import Supervision, report_failure
from instar.kube.access.attributes import Attributes, User
from instar.kube.access.authorizers import AuthzDecision, AuthzVerdict
from instar.server.audit.policy import AuditLevel, AuditPolicy, AuditStage
from instar.server.audit.request_record import (
    UNRECORDED,
    AuditEvent,
    RecordedBody,
    RequestRecord,
    shown_agent,
    source_addresses,
)
from instar.server.audit.sinks import Sink
from instar.server.http.messages import Feed, Outlet, Request, Response
from instar.server.rest.request_attributes import ResourcePath, attributes_of, parse_resource_path

_NOBODY = User("")
_STATUS = b'{"kind":"Status"'
_LARGEST_STATUS = 64 << 10
_NOT_UNDERSTOOD = (400, 401, 403, 413, 415)
"""Status codes that mean the body was not read or not understood."""
_LOOKS, _PAUSE = 2000, 0.005
"""How often a request checks a full log that must not lose events, and the seconds between two
checks."""
_CLOSED_EARLY = {"status": "Success", "message": "Connection closed early", "code": 200}


class AuditMetrics:
    """Counters of audit events, with kube-apiserver's names."""

    def __init__(self) -> None:
        self.events = Counter(
            "apiserver_audit_event_total", "Audit events made and handed to the sinks."
        )
        self.levels = Counter(
            "apiserver_audit_level_total",
            "Requests, by the level they are recorded at.",
            ("level",),
        )
        self.errors = Counter(
            "apiserver_audit_error_total", "Audit events that were lost, by where.", ("plugin",)
        )
        self.rejected = Counter(
            "apiserver_audit_requests_rejected_total",
            "Requests refused because they could not be recorded.",
        )

    def all(self) -> tuple[Metric, ...]:
        return (self.events, self.levels, self.errors, self.rejected)


class Auditor:
    """Decides by the policy what is recorded, and sends events to the sinks."""

    def __init__(
        self,
        policy: AuditPolicy,
        sinks: Sequence[Sink],
        metrics: AuditMetrics,
        *,
        patient: bool = True,
        strict: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``patient``: a request waits while a sink is full. ``strict``: a request is refused if
        its first event cannot be stored."""
        self._policy, self._sinks, self._metrics = policy, sinks, metrics
        self._patient, self._strict, self._clock = patient, strict, clock

    def start(self, supervision: Supervision) -> None:
        for sink in self._sinks:
            sink.start(supervision)

    async def stop(self) -> None:
        for sink in self._sinks:
            await sink.stop()

    async def begin(self, request: Request, path: ResourcePath | None, user: User, id: str) -> None:
        """Record an authenticated request. Raises ``Internal`` if the event must be stored first
        and cannot be."""
        trail = self._trail(request, attributes_of(request, path, user), id)
        request.trail = trail
        if trail is UNRECORDED:
            return
        if self._patient and any(sink.crowded for sink in self._sinks):
            await self._room()
        event = trail.at(AuditStage.RECEIVED, trail.received, {})
        if event is None:
            return
        if not self._strict:
            self._emit(event)
        elif not await self._stored(event):
            self._metrics.rejected.add()
            raise Internal("failed to store audit event")

    def decided(self, request: Request, decision: AuthzDecision) -> None:
        if decision.error and decision.verdict is AuthzVerdict.NO_OPINION:
            request.annotate("authorization.k8s.io/reason", "internal error")
            return
        allowed = decision.verdict is AuthzVerdict.ALLOW
        request.annotate("authorization.k8s.io/decision", "allow" if allowed else "forbid")
        request.annotate("authorization.k8s.io/reason", decision.reason)

    def answered(
        self, request: Request, response: Response, failure: BaseException | None, id: str
    ) -> None:
        """Record the response, before it is compressed and sent. A failure is counted and does not
        change the response."""
        try:
            self._answered(request, response, failure, id)
        except Exception as error:
            self._lost(error, id)

    def _lost(self, error: Exception, id: str) -> None:
        report_failure("audit", error, id)
        self._metrics.errors.add(("auditor",))

    def _answered(
        self, request: Request, response: Response, failure: BaseException | None, id: str
    ) -> None:
        trail: RequestRecord | None = request.trail
        if trail is None:
            self._unknown(request, response, failure, id)
            return
        if trail is UNRECORDED:
            return
        if request.requester is not None and request.asked.user is not request.requester:
            trail.impersonated, trail.constraint = request.asked.user, request.constraint
        if request.body and response.status not in _NOT_UNDERSTOOD:
            trail.came(_media_of(request.header(b"content-type")), request.body)
        status = _status(response, failure)
        if response.stream is not None:
            if trail.long_running:
                self._record(trail, AuditStage.STARTED, request, status)
            response.stream = _NotifyingFeed(
                response.stream, lambda: self._record(trail, AuditStage.COMPLETE, request, status)
            )
            return
        if trail.long_running:
            self._record(trail, AuditStage.STARTED, request, status)
        broken = failure is not None and not isinstance(failure, ApiError | asyncio.CancelledError)
        self._record(
            trail, AuditStage.PANIC if broken else AuditStage.COMPLETE, request, status, response
        )

    def client_disconnected(self, request: Request) -> None:
        """Record that the client disconnected before the response."""
        if request.trail is not None and request.trail is not UNRECORDED:
            self._record(request.trail, AuditStage.COMPLETE, request, _CLOSED_EARLY)

    def _trail(self, request: Request, asked: Attributes, id: str) -> RequestRecord:
        decision = self._policy.decide(asked)
        self._metrics.levels.add((decision.level.text,))
        if decision.level is AuditLevel.NONE:
            return UNRECORDED
        forwarded = request.header(b"x-forwarded-for")
        return RequestRecord(
            decision,
            id,
            request.uri.decode("latin-1"),
            asked,
            source_addresses(forwarded, request.header(b"x-real-ip"), request.remote),
            shown_agent(request.header(b"user-agent")),
            self._clock(),
        )

    def _unknown(
        self, request: Request, response: Response, failure: BaseException | None, id: str
    ) -> None:
        """Record a request that was not authenticated: a single event, as kube-apiserver does."""
        asked = attributes_of(request, parse_resource_path(request.path), _NOBODY)
        trail = self._trail(request, asked, id)
        if trail is not UNRECORDED:
            trail.authenticated = False
            event = trail.at(AuditStage.STARTED, self._clock(), {}, _status(response, failure))
            if event is not None:
                self._emit(event)

    def _record(
        self,
        trail: RequestRecord,
        stage: AuditStage,
        request: Request,
        status: dict[str, Any],
        response: Response | None = None,
    ) -> None:
        sent = None
        if response is not None and trail.level is AuditLevel.REQUEST_RESPONSE:
            response.chunks = chunks = tuple(response.chunks)
            sent = RecordedBody(_media(response), chunks)
        event = trail.at(stage, self._clock(), request.annotations, status, sent)
        if event is not None:
            self._emit(event)

    def _emit(self, event: AuditEvent) -> None:
        self._metrics.events.add()
        for sink in self._sinks:
            sink.put(event)

    async def _room(self) -> None:
        for _ in range(_LOOKS):
            if not any(sink.crowded for sink in self._sinks):
                return
            await asyncio.sleep(_PAUSE)

    async def _stored(self, event: AuditEvent) -> bool:
        loop = asyncio.get_running_loop()
        self._metrics.events.add()
        for sink in self._sinks:
            if not sink.confirms:
                sink.put(event)
                continue
            answer: asyncio.Future[bool] = loop.create_future()

            def stored(well: bool, answer: asyncio.Future[bool] = answer) -> None:
                loop.call_soon_threadsafe(_resolve, answer, well)

            if not sink.put(event, stored):
                return False
            await asyncio.wait([answer], timeout=_LOOKS * _PAUSE)
            if not answer.done():
                self._metrics.errors.add(("stalled",))
                return False
            if not answer.result():
                return False
        return True


class _NotifyingFeed:
    """A response stream that calls a function when it ends."""

    def __init__(self, feed: Feed, ended: Callable[[], None]) -> None:
        self._feed, self._ended = feed, ended
        self._over = False

    def open(self, outlet: Outlet) -> None:
        self._feed.open(_NotifyingOutlet(outlet, self._end))

    def resume(self) -> None:
        self._feed.resume()

    def close(self) -> None:
        self._end()
        self._feed.close()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._ended()


class _NotifyingOutlet:
    def __init__(self, outlet: Outlet, ended: Callable[[], None]) -> None:
        self._outlet, self._ended = outlet, ended
        self.send, self.backlog, self.abort = outlet.send, outlet.backlog, outlet.abort

    def finish(self) -> None:
        self._ended()
        self._outlet.finish()


def _resolve(answer: asyncio.Future[bool], well: bool) -> None:
    if not answer.done():
        answer.set_result(well)


def _media(response: Response) -> str:
    kind = next((value for name, value in response.headers if name == b"content-type"), b"")
    return _media_of(kind.decode("latin-1"))


def _media_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower() or "application/json"


def _status(response: Response, failure: BaseException | None) -> dict[str, Any]:
    """Return the responseStatus: a whole Status, or only the code of another body."""
    if isinstance(failure, ApiError):
        return failure.to_status()
    if response.status >= 300 or response.length > _LARGEST_STATUS:
        return {"code": response.status}
    chunks = response.chunks
    if isinstance(chunks, tuple) and chunks and chunks[0].startswith(_STATUS):
        document: dict[str, Any] = orjson.loads(b"".join(chunks))
        return {"code": response.status, **document}
    return {"code": response.status}
