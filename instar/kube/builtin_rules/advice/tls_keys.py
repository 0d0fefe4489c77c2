"""Whether a certificate and a private key, both DER, belong together.

Called by ``tls_pairs.py``, which finds them in PEM; the texts are those of Go's ``crypto/tls``.
"""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate

_UNREADABLE = "x509: malformed certificate"
_NO_KEY = "tls: failed to parse private key"
_OTHER_KEY = "tls: private key does not match public key"
_OTHER_KIND = "tls: private key type does not match public key type"


def difference(leaf: bytes, key: bytes) -> str | None:
    """Return why the key cannot sign for the certificate; None if it can."""
    try:
        public = load_der_x509_certificate(leaf).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return _UNREADABLE
    try:
        private = load_der_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return _NO_KEY
    kinds = (
        (rsa.RSAPublicKey, rsa.RSAPrivateKey),
        (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey),
        (ed25519.Ed25519PublicKey, ed25519.Ed25519PrivateKey),
    )
    if isinstance(private, x25519.X25519PrivateKey):
        return "tls: found unknown private key type in PKCS#8 wrapping"
    if not isinstance(private, tuple(kind for _, kind in kinds)):
        return _NO_KEY
    for public_kind, private_kind in kinds:
        if isinstance(public, public_kind):
            if not isinstance(private, private_kind):
                return _OTHER_KIND
            return None if private.public_key() == public else _OTHER_KEY
    return "tls: unknown public key algorithm"
