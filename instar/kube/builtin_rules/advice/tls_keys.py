"""Whether a certificate and a private key, both DER, belong together.

Called by ``tls_pairs.py``, which finds them in PEM; the texts are those of Go's ``crypto/tls``.
"""

from __future__ import annotations

import re
from typing import Final

from cryptography.exceptions import InternalError, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate

_LONGEST: Final = 16 << 10
"""Bytes of a key. One of 16,384 bits, the longest that TLS libraries use, has 9 kB. A longer key is
not judged, because the checks take time that grows with the square of its length."""
_LENGTH: Final = rb"(?:[\x00-\x7f]|\x81.|\x82..)"
_FORMS = re.compile(
    b"\x30" + _LENGTH + rb"\x02\x01[\x00\x01](?:\x02|\x04|\x30" + _LENGTH + rb"\x06(.)(.{1,32}))",
    re.DOTALL,
)
"""How keys begin: PKCS #1, SEC 1, and PKCS #8, which names the algorithm."""
_READ: Final = tuple(
    map(bytes.fromhex, ("2a864886f70d010101", "2a8648ce3d0201", "2b6570", "2b656e"))
)
"""RSA, ECDSA, Ed25519 and X25519. The library computes the public keys of others as it reads them,
which takes long with numbers that are made for it."""
_UNREAD = (ValueError, TypeError, UnsupportedAlgorithm, InternalError)
_UNREADABLE = "x509: malformed certificate"
_NO_KEY = "tls: failed to parse private key"
_OTHER_KEY = "tls: private key does not match public key"
_OTHER_KIND = "tls: private key type does not match public key type"


def difference(leaf: bytes, key: bytes) -> str | None:
    """Return why the key cannot sign for the certificate; None if it can, or is too long to say."""
    try:
        public = load_der_x509_certificate(leaf).public_key()
    except _UNREAD:
        return _UNREADABLE
    if len(key) > _LONGEST:
        return None
    private = _private(key)
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


def _private(key: bytes) -> PrivateKeyTypes | None:
    form = _FORMS.match(key)
    if form is None or (form[1] and form[2][: form[1][0]] not in _READ):
        return None
    try:
        # The library would test whether the factors of an RSA key are primes. Go does not, and a
        # key of 11 kB made for it takes 47 seconds.
        private = load_der_private_key(key, None, unsafe_skip_rsa_key_validation=True)
        if isinstance(private, rsa.RSAPrivateKey) and not _is_consistent(private.private_numbers()):
            return None
    except _UNREAD:
        return None
    return private


def _is_consistent(key: rsa.RSAPrivateNumbers) -> bool:
    """Whether the numbers of an RSA key belong together."""
    n, e, p, q = key.public_numbers.n, key.public_numbers.e, key.p, key.q
    if min(p, q) < 3 or p * q != n:
        return False
    if (key.dmp1, key.dmq1) != (key.d % (p - 1), key.d % (q - 1)):
        return False
    return key.dmp1 * e % (p - 1) == 1 and key.dmq1 * e % (q - 1) == 1 and key.iqmp * q % p == 1
