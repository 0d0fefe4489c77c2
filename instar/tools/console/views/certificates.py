"""Expiry dates of webhook certificates: those in a caBundle and the one that the webhook presents.

Used by ``webhooks.py``.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime

from cryptography import x509

from instar.base.json_values import Object

SOON_DAYS = 14
"""A certificate that ends in fewer days is reported as a problem."""
_MAX_CERTIFICATES = 20
"""Of a caBundle with more certificates only this number is shown."""


def in_bundle(bundle: str, now: datetime) -> list[Object]:
    """Return a line per certificate of a caBundle, or a line that says that it cannot be parsed."""
    try:
        found = x509.load_pem_x509_certificates(base64.b64decode(bundle, validate=True))
    except (ValueError, binascii.Error):
        return [_line("caBundle", "", None, now, "the caBundle cannot be read")]
    return [
        _line("caBundle", item.subject.rfc4514_string(), item.not_valid_after_utc, now)
        for item in found[:_MAX_CERTIFICATES]
    ]


def certificate_line(subject: str, until: str | None, now: datetime) -> Object:
    """Return the line of the certificate that a webhook presented last."""
    ends = None if until is None else datetime.fromisoformat(until)
    return _line("serving", subject, ends, now)


def _line(
    what: str, subject: str, until: datetime | None, now: datetime, problem: str = ""
) -> Object:
    days = None if until is None else (until - now).days
    if until is not None and until <= now:
        problem = f"it ended on {until:%Y-%m-%d}"
    elif days is not None and days < SOON_DAYS:
        problem = f"it ends on {until:%Y-%m-%d}"
    return {
        "what": what,
        "subject": subject,
        "notAfter": None
        if until is None
        else until.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "daysLeft": days,
        "ended": until is not None and until <= now,
        "problem": problem,
    }
