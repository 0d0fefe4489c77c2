"""Audit IDs: one for each request, told to the client, the audit log and backends.

``server/app.py`` calls it for each request. A client may send its own.
"""

from __future__ import annotations

import itertools
import secrets
import uuid

from instar.server.http.messages import Request

_PREFIX = str(uuid.uuid4()).encode()[:24]
_numbers = itertools.count(secrets.randbits(40))


def audit_id_of(request: Request) -> str:
    """Return the audit ID that the client sent, or a new one."""
    return request.headers.setdefault(b"audit-id", new_audit_id()).decode("latin-1")


def new_audit_id() -> bytes:
    """Return a unique ID: a prefix of this process and a number. Not secret."""
    return b"%b%012x" % (_PREFIX, next(_numbers))
