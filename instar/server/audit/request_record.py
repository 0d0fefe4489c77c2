"""Audit record of one request: collected while it is handled, and copied into immutable events.

``auditor.py`` makes a ``RequestRecord`` per request and an ``AuditEvent`` per stage; an event is
immutable, so another thread can write it. No HTTP and no I/O here.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import orjson

from instar.base.fast_dataclass import dataclass
from instar.kube.access.attributes import OURSELVES, Attributes, User
from instar.server.audit.policy import NOTHING, AuditDecision, AuditLevel, AuditStage

_LONGEST_AGENT = 1024
_ADDRESS = re.compile(r"[0-9a-fA-F:.]{2,45}")
_SLOW_SECONDS = 0.5
"""A request that takes longer gets the annotation with its latency."""
_OBJECT_PREFIXES = ("/api/", "/apis/")
"""Prefixes of paths that are not resources but are answered with objects."""
LATENCY = "apiserver.latency.k8s.io/total"
_PATCH_ANNOTATIONS = "patch.webhook.admission.k8s.io/"
"""Annotations with patches of webhooks: content, so recorded only where bodies are."""


class RecordedBody(NamedTuple):
    """A body as it was sent, with its media type."""

    media: str
    chunks: Sequence[bytes]


class AuditEvent(NamedTuple):
    """The state of a record at one stage."""

    trail: RequestRecord
    stage: AuditStage
    when: float
    annotations: Mapping[str, str]
    status: Mapping[str, Any] | None = None
    response: RecordedBody | None = None


@dataclass(slots=True)
class RequestRecord:
    """What is recorded of one request, while it is handled."""

    decision: AuditDecision
    id: str
    uri: str
    asked: Attributes
    sources: tuple[str, ...]
    agent: str
    received: float
    """Seconds since 1970."""
    authenticated: bool = True
    impersonated: User | None = None
    constraint: str = ""
    """The constraint that allowed the impersonation."""
    body: bytes | None = None
    """The request's object as JSON, once it was decoded."""
    raw: RecordedBody | None = None
    """A body that is no object, as it was sent: a patch, options."""
    about: dict[str, str] = field(default_factory=dict)
    """Name, namespace, uid and resourceVersion in the body."""

    @property
    def level(self) -> AuditLevel:
        return self.decision.level

    @property
    def long_running(self) -> bool:
        return self.asked.long_running

    def record_body(self, obj: Mapping[str, Any]) -> None:
        """Record the decoded body, before the handler changes it."""
        if self.level is AuditLevel.NONE:
            return
        metadata = obj.get("metadata")
        if isinstance(metadata, dict):
            for name in ("name", "namespace", "uid", "resourceVersion"):
                value = metadata.get(name)
                if isinstance(value, str) and value:
                    self.about[name] = value
        if self.level >= AuditLevel.REQUEST:
            self.body = orjson.dumps(obj)

    def came(self, media: str, body: bytes) -> None:
        """Record a body that was accepted and is not an object."""
        if self.level >= AuditLevel.REQUEST and self.body is None and body:
            self.raw = RecordedBody(media, (body,))

    def at(
        self,
        stage: AuditStage,
        when: float,
        annotations: Mapping[str, str],
        status: Mapping[str, Any] | None = None,
        response: RecordedBody | None = None,
    ) -> AuditEvent | None:
        """Return an event; None if the policy omits the stage."""
        if self.level is AuditLevel.NONE or stage in self.decision.omitted:
            return None
        said = dict(annotations)
        if self.level < AuditLevel.REQUEST:
            said = {
                key: text for key, text in said.items() if not key.startswith(_PATCH_ANNOTATIONS)
            }
        slow = when - self.received > _SLOW_SECONDS and not self.long_running
        if slow and stage is AuditStage.COMPLETE:
            said.setdefault(LATENCY, go_duration(when - self.received))
        typed = bool(self.asked.resource) or self.asked.path.startswith(_OBJECT_PREFIXES)
        wanted = self.level is AuditLevel.REQUEST_RESPONSE and not self.long_running and typed
        return AuditEvent(self, stage, when, said, status, response if wanted else None)


UNRECORDED = RequestRecord(NOTHING, "", "", OURSELVES, (), "", 0.0)
"""The record of all requests that the policy leaves out."""


def source_addresses(forwarded: str, real: str, peer: str) -> tuple[str, ...]:
    """sourceIPs as kube-apiserver lists them: forwarded addresses, then the peer's. A client may
    send thousands of forwarded ones, so texts that are no address are told apart cheaply."""
    parts = (part.strip() for part in forwarded.split(","))
    found = [text for text in parts if _is_address(text)]
    if real and _is_address(real) and real not in found:
        found.append(real)
    if peer and (not found or found[-1] != peer):
        found.append(peer)
    return tuple(found)


def _is_address(text: str) -> bool:
    if _ADDRESS.fullmatch(text) is None:
        return False
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except OSError:
        return False
    return True


def shown_agent(agent: str) -> str:
    """Return a user agent, shortened if it is long."""
    return agent if len(agent) <= _LONGEST_AGENT else agent[:_LONGEST_AGENT] + "...TRUNCATED"


def go_duration(seconds: float) -> str:
    """A duration below a day, as Go prints it: ``1m2.5s``, ``19.995379687s``, ``239.867ms``."""
    if seconds < 1:
        return f"{_short(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{_short(rest)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


def _short(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")
