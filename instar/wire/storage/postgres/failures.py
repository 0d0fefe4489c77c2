"""Interprets a failed call to PostgreSQL: the text for the operator and what to do next.

Called by ``server.py``, whose ``explain`` the rest of the package uses, with the exception of the
driver. The module decides by SQLSTATE codes, never by texts. After any error that the server did
not report itself, the connection is unusable and the outcome of the call is unknown.
"""

from __future__ import annotations

import ssl
from typing import NamedTuple

from instar.wire.storage.store import StoreError, Unavailable, ValueTooLarge

FENCED = "IN001"
"""The number of a batch does not follow the writer's last one."""

_TEXTS_BY_CODE = {
    "28P01": "the password is wrong; it comes from --postgres-password-file, the URL, PGPASSWORD "
    "or a .pgpass file that only its owner can read",
    "28000": "the server refuses this user, database or client address (pg_hba.conf)",
    "3D000": "the database does not exist",
    "42501": "the role lacks a right; the owner of the tables can give it: "
    "instar storage init URL --grant ROLE",
    "3F000": "the schema does not exist; instar storage init URL creates it",
    "42P01": "instar's tables are missing; instar storage init URL creates them",
    "42883": "instar's functions are missing or of another release; "
    "instar storage init URL creates them",
    "53300": "the server has no free connection (max_connections); a process of instar needs four",
    "53100": "the server's disk is full",
    "53200": "the server is out of memory",
    "25006": "the server is read-only (a standby, or set so); instar needs the primary",
    "26000": "a prepared statement is gone: the address is a pooler in transaction mode; connect "
    "to the server itself, to a pooler in session mode, or add feed=poll to the URL",
    "57P01": "an administrator ended the connection",
    "57P02": "the server crashed and restarts",
    "57P03": "the server is starting up or shutting down",
    "55P03": "a lock was not free in time",
    "54000": "the key is too long",
}
_GONE = ("08", "57P", "26", "XX")
"""Classes of codes after which the connection is not used again."""
_ELSEWHERE = ("25006",)
"""Codes that mean: another host may be the primary."""


class CallFailure(NamedTuple):
    """Error of a failed call, and whether to reconnect and whether a write may be committed."""

    error: StoreError
    code: str
    """SQLSTATE; empty where the server did not answer."""
    gone: bool
    """Whether the connection must not be used again."""
    undecided: bool
    """Whether a write may nevertheless have been committed."""


def explain(error: BaseException, where: str) -> CallFailure:
    """Translate an exception of the driver."""
    code = getattr(error, "sqlstate", None) or ""
    if code:
        gone = code.startswith(_GONE) or code in _ELSEWHERE
        text = _TEXTS_BY_CODE.get(code, "")
        told = f"{text}: {_one_line(error)}" if text else f"{_one_line(error)} ({code})"
        kind = ValueTooLarge if code == "54000" else Unavailable
        return CallFailure(
            kind(f"{where}: {told}"), code, gone, code.startswith(("08", "57P", "XX"))
        )
    return CallFailure(Unavailable(f"{where}: {_without_code(error)}"), "", True, True)


def _without_code(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if type(error) is ConnectionError:  # the driver's own, when the server declines TLS
        return (
            "the server does not offer TLS; add sslmode=disable to the URL if the network between "
            "may carry plain text"
        )
    return _one_line(error)


def _one_line(error: BaseException) -> str:
    return " ".join((str(error) or error.__class__.__name__).split())
