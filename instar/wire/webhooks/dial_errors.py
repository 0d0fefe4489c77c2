"""Error texts of failed connections, equal to those of Go's net and crypto packages.

Used by ``dialer.py``, ``connecting.py`` and ``https.py``. Users search the web for kube-apiserver's
messages, so these must be the same. Each text has advice on the likely cause.
"""

from __future__ import annotations

import errno
import ssl
from typing import NamedTuple

_SYSCALL_TEXTS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset by peer",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
    errno.EPIPE: "broken pipe",
}
_UNKNOWN_AUTHORITY_CODES = {2, 18, 19, 20, 21}
_EXPIRY_CODES = {9, 10}
_WRONG_NAME_CODES = {62, 64}
"""Codes of OpenSSL's certificate verification."""
_NOT_TLS_REASONS = {
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "UNKNOWN_PROTOCOL",
    "PACKET_LENGTH_TOO_LONG",
}


class Explained(NamedTuple):
    """An error text in Go's words, with advice."""

    text: str
    advice: str


def connect_failure(address: str, error: OSError) -> Explained:
    """Return the text for a failed connect to ``address`` (``host:port``)."""
    text = _syscall_text(error)
    advice = f"nothing accepts connections on {address}; is the webhook running there?"
    return Explained(f"dial tcp {address}: connect: {text}", advice)


def lookup_failure(host: str) -> Explained:
    advice = f"the name {host} has no address here; check the host in the CRD's clientConfig"
    return Explained(f"dial tcp: lookup {host}: no such host", advice)


def invalid_port(port: int) -> Explained:
    return Explained(
        f"dial tcp: address {port}: invalid port", "check the port in the CRD's clientConfig"
    )


def no_such_proxy(scheme: str, authority: str) -> Explained:
    address = authority.rpartition("@")[2]  # strip the user and password
    return Explained(
        f'invalid proxy address "{scheme}://{address}"',
        "HTTPS_PROXY must be the URL of an http:// or https:// proxy",
    )


def refused_by_proxy(proxy: str, target: str, status: int, reason: str) -> Explained:
    return Explained(
        reason or "unknown status code",
        f"the proxy {proxy} answered HTTP {status} when asked to connect to {target}",
    )


def through_proxy(problem: Explained) -> Explained:
    return Explained(f"proxyconnect tcp: {problem.text}", problem.advice)


def broken_connection(address: str, error: OSError) -> Explained:
    text = f"read tcp {address}: read: {_syscall_text(error)}"
    return Explained(text, "the webhook closed the connection instead of answering; see its log")


def closed_without_answer() -> Explained:
    return Explained("EOF", "the webhook closed the connection without answering; see its log")


def malformed_answer() -> Explained:
    return Explained(
        "net/http: HTTP/1.x transport connection broken: malformed HTTP response",
        "the webhook's answer is not valid HTTP",
    )


def lost_connection(server_name: str, address: str, problem: OSError | None) -> Explained:
    """Return the text for a connection that ended before an answer."""
    if isinstance(problem, ssl.SSLError):
        return tls_failure(server_name, problem)
    if isinstance(problem, ConnectionAbortedError) and problem.errno is None:
        return Explained(
            "net/http: TLS handshake timeout",
            f"{address} accepts connections but does not speak TLS, or is overloaded",
        )
    if problem is None or problem.errno is None:
        return closed_without_answer()
    return broken_connection(address, problem)


def tls_failure(server_name: str, error: ssl.SSLError) -> Explained:
    """Return the text for a failed TLS handshake or verification with ``server_name``."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem, advice = _untrusted_text(server_name, error)
        return Explained(f"tls: failed to verify certificate: x509: {problem}", advice)
    reason = error.reason or ""
    if reason in _NOT_TLS_REASONS:
        return Explained(
            "http: server gave HTTP response to HTTPS client",
            "the webhook does not speak TLS on this port; a conversion webhook must",
        )
    if "ALERT" in reason:
        alert = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return Explained(
            f"remote error: tls: {alert}",
            "the webhook refused the TLS connection; does it want a client certificate?",
        )
    return Explained(f"tls: {reason.replace('_', ' ').lower() or error}", "see the webhook's log")


def _untrusted_text(server_name: str, error: ssl.SSLCertVerificationError) -> tuple[str, str]:
    code = error.verify_code
    if code in _UNKNOWN_AUTHORITY_CODES:
        return "certificate signed by unknown authority", (
            "clientConfig.caBundle must hold the CA that signed the webhook's certificate "
            "(without a caBundle the system's CAs count)"
        )
    if code in _WRONG_NAME_CODES:
        return f"certificate is valid for other names, not {server_name}", (
            f"the webhook's certificate must carry {server_name} as a subject alternative name"
        )
    if code in _EXPIRY_CODES:
        return "certificate has expired or is not yet valid", (
            "renew the webhook's certificate, or check the clocks"
        )
    return error.verify_message, "check the webhook's certificate and the CRD's caBundle"


def _syscall_text(error: OSError) -> str:
    known = _SYSCALL_TEXTS.get(error.errno or 0)
    return known or (error.strerror or str(error)).lower()
