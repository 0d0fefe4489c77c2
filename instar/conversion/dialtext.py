"""A failed connection in the words of Go's net and crypto packages.

People search for these sentences, and kube-apiserver's are the ones that are documented all
over the web; Python's say the same less recognisably. Each comes with advice, because the
sentence alone has sent many people to the wrong place. Knows no HTTP library.
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
_UNKNOWN_AUTHORITY = {2, 18, 19, 20, 21}
_OUT_OF_DATE = {9, 10}
_WRONG_NAME = {62, 64}
_NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG"}


class Explained(NamedTuple):
    text: str
    advice: str


def connect_failure(address: str, error: OSError) -> Explained:
    """``address`` is ``host:port`` as dialled."""
    text = _syscall_text(error)
    advice = f"nothing accepts connections on {address}; is the webhook running there?"
    return Explained(f"dial tcp {address}: connect: {text}", advice)


def lookup_failure(host: str) -> Explained:
    advice = f"the name {host} has no address here; check the host in the CRD's clientConfig"
    return Explained(f"dial tcp: lookup {host}: no such host", advice)


def broken_connection(address: str, error: OSError) -> Explained:
    text = f"read tcp {address}: read: {_syscall_text(error)}"
    return Explained(text, "the webhook closed the connection instead of answering; see its log")


def closed_without_answer() -> Explained:
    return Explained("EOF", "the webhook closed the connection without answering; see its log")


def tls_failure(server_name: str, error: ssl.SSLError) -> Explained:
    """The verification or handshake problem with a server that was to be ``server_name``."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem, advice = _untrusted(server_name, error)
        return Explained(f"tls: failed to verify certificate: x509: {problem}", advice)
    reason = error.reason or ""
    if reason in _NOT_TLS:
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


def _untrusted(server_name: str, error: ssl.SSLCertVerificationError) -> tuple[str, str]:
    code = error.verify_code
    if code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority", (
            "clientConfig.caBundle must hold the CA that signed the webhook's certificate "
            "(without a caBundle the system's CAs count)"
        )
    if code in _WRONG_NAME:
        return f"certificate is valid for other names, not {server_name}", (
            f"the webhook's certificate must carry {server_name} as a subject alternative name"
        )
    if code in _OUT_OF_DATE:
        return "certificate has expired or is not yet valid", (
            "renew the webhook's certificate, or check the clocks"
        )
    return error.verify_message, "check the webhook's certificate and the CRD's caBundle"


def _syscall_text(error: OSError) -> str:
    known = _SYSCALL_TEXTS.get(error.errno or 0)
    return known or (error.strerror or str(error)).lower()
