"""Client certificates of connections: the certificate of a user, or of a front proxy.

``lifecycle/lifetime.py`` passes these functions to ``http/http1.py``, which calls one for each new
connection. TLS has verified the certificate against both CAs together; with a front proxy, these
functions decide which CA has signed the certificate; otherwise a proxy could pass as a user and a
user as a proxy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from instar.kube.access.attributes import User
from instar.kube.api.encoding.pem import blocks
from instar.server.access.front_proxy import Proxy, UnacceptedCertificate
from instar.server.http.handler_types import TlsPeer
from instar.server.identity.client_certificates import user_of_certificate

Signed = Callable[[bytes], bool]
"""Whether a CA has signed a certificate (DER)."""


def plain_peer(tls: TlsPeer) -> User | None:
    shown, der = tls.getpeercert(), tls.getpeercert(True)
    return user_of_certificate(
        shown if isinstance(shown, dict) else None, der if isinstance(der, bytes) else None
    )


class ProxiedPeers:
    """Distinguishes proxies from clients. Certificates of intermediate CAs count as neither."""

    def __init__(self, clients: Signed, proxies: Signed, allowed: frozenset[str]) -> None:
        """``allowed``: names of proxies; none: all that their CA has signed."""
        self._clients, self._proxies, self._allowed = clients, proxies, allowed

    def __call__(self, tls: TlsPeer) -> User | None:
        der = tls.getpeercert(True)
        user = plain_peer(tls)
        if not isinstance(der, bytes):
            return None
        is_client = self._clients(der)
        itself = user if is_client else None
        name = user.name if user is not None else ""
        if self._proxies(der) and (not self._allowed or name in self._allowed):
            return Proxy(name or "front-proxy", itself=itself)
        return itself if is_client else UnacceptedCertificate(name)


def signed_by(*bundles: Path) -> Signed:
    """Raises ``ValueError`` for a file without certificates."""
    # Imported here: without a front proxy cryptography is not needed.
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    authorities: list[x509.Certificate] = []
    for path in bundles:
        pem = path.read_bytes()
        found = [
            x509.load_pem_x509_certificate(pem[block.start : block.end])
            for block in blocks(pem)
            if block.type == b"CERTIFICATE"
        ]
        if not found:
            raise ValueError(f"{path}: there is no certificate in it")
        authorities += found

    def signed(der: bytes) -> bool:
        certificate = x509.load_der_x509_certificate(der)
        for authority in authorities:
            try:
                certificate.verify_directly_issued_by(authority)
            except (ValueError, TypeError, InvalidSignature):
                if certificate != authority:
                    continue
            return True
        return False

    return signed
