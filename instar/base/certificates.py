"""X.509 certificate authority: creates a CA and issues server and client certificates, in PEM
format.

Called by ``server/files/certificates.py``, which stores them as files, by
``server/access/identities.py`` and by the SDK. ``der.py`` encodes certificates; keys and signatures
are made with the cryptography library. The X.509 module of that library is loaded only to read an
existing CA, because importing it takes a sixth of the time of a first start. Import this module
lazily where certificates are not always needed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from ipaddress import ip_address
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from instar.base import der

_BACKDATING = timedelta(hours=1)
"""A certificate is valid from this long before it is made: clocks of clients may be behind."""
_LONGEST_NAME = 64
_SERIAL_BITS = 159

_ORGANISATION, _COMMON_NAME = der.oid("2.5.4.10"), der.oid("2.5.4.3")
_SERVER_AUTH, _CLIENT_AUTH = der.oid("1.3.6.1.5.5.7.3.1"), der.oid("1.3.6.1.5.5.7.3.2")
_P256 = der.sequence(der.oid("1.2.840.10045.2.1"), der.oid("1.2.840.10045.3.1.7"))
_ECDSA_SHA256 = der.sequence(der.oid("1.2.840.10045.4.3.2"))
_RSA_SHA256 = der.sequence(der.oid("1.2.840.113549.1.1.11"), der.NULL)
_MAY_SIGN_OTHERS, _MAY_SEAL_KEYS = der.bits(b"\x86", 1), der.bits(b"\xa0", 5)
"""Besides signing for itself, which is the highest bit of both."""


class KeyPair(NamedTuple):
    """A certificate and its private key, both PEM."""

    cert: bytes
    key: bytes


class Signer(NamedTuple):
    """Name, key id and signing function of a CA, as needed to issue a certificate."""

    name: bytes
    key_id: bytes
    algorithm: bytes
    sign: Callable[[bytes], bytes]


class Authority:
    """Certificate authority. With its private key it issues certificates; ``pem.cert`` alone
    verifies them."""

    def __init__(self, pem: KeyPair, signer: Signer | None = None) -> None:
        self.pem = pem
        self._signer = _read(pem) if signer is None else signer

    @classmethod
    def make(cls, name: str, valid: timedelta) -> Authority:
        key, called = _Key(), _name(name)
        signer = Signer(called, key.id, _ECDSA_SHA256, key.sign)
        constraints = der.sequence(der.TRUE, der.integer(0))
        extensions = [
            _extension("2.5.29.19", constraints, critical=True),
            _extension("2.5.29.15", _MAY_SIGN_OTHERS, critical=True),
            _extension("2.5.29.14", der.octets(key.id)),
        ]
        return cls(KeyPair(_certificate(signer, called, key, valid, extensions), key.pem), signer)

    def server(self, name: str, hosts: Sequence[str], valid: timedelta) -> KeyPair:
        """Issue a serving certificate for ``hosts`` (DNS names or IP addresses)."""
        hosted = _extension("2.5.29.17", der.sequence(*map(_host, hosts)))
        return self._issue(_name(name), valid, _SERVER_AUTH, hosted)

    def client(self, user: str, groups: Sequence[str], valid: timedelta) -> KeyPair:
        """Issue a client certificate. Raises ``ValueError`` for names that a certificate cannot
        hold unchanged, because the holder would then authenticate as another user."""
        for name in (user, *groups):
            if not 0 < len(name) <= _LONGEST_NAME:
                text = f'"{name}" has {len(name)} characters; a certificate holds 1 to'
                raise ValueError(f"{text} {_LONGEST_NAME}")
        return self._issue(_name(user, groups), valid, _CLIENT_AUTH)

    def _issue(self, name: bytes, valid: timedelta, use: bytes, *more: bytes) -> KeyPair:
        key = _Key()
        extensions = [
            _extension("2.5.29.19", der.sequence(), critical=True),
            _extension("2.5.29.15", _MAY_SEAL_KEYS, critical=True),
            _extension("2.5.29.37", der.sequence(use)),
            _extension("2.5.29.35", der.sequence(der.implicit(0, self._signer.key_id))),
            *more,
        ]
        return KeyPair(_certificate(self._signer, name, key, valid, extensions), key.pem)


def new_private_key() -> bytes:
    """Return a new private key as PEM."""
    return _Key().pem


class _Key:
    """New private key on the P-256 curve."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        at = self._key.public_key().public_numbers()
        point = b"\x04" + at.x.to_bytes(32, "big") + at.y.to_bytes(32, "big")
        self._point = der.bits(point)
        self.id = sha1(point, usedforsecurity=False).digest()

    @property
    def public(self) -> bytes:
        return der.sequence(_P256, self._point)

    @property
    def pem(self) -> bytes:
        """Return the private key as PKCS #8 PEM."""
        secret = self._key.private_numbers().private_value.to_bytes(32, "big")
        inner = der.sequence(der.integer(1), der.octets(secret), der.explicit(1, self._point))
        return der.pem("PRIVATE KEY", der.sequence(der.integer(0), _P256, der.octets(inner)))

    def sign(self, data: bytes) -> bytes:
        return self._key.sign(data, ec.ECDSA(SHA256()))


def _certificate(
    signer: Signer, subject: bytes, key: _Key, valid: timedelta, extensions: Sequence[bytes]
) -> bytes:
    now = datetime.now(UTC)
    content = der.sequence(
        der.explicit(0, der.integer(2)),  # X.509 version 3
        der.integer(1 + secrets.randbits(_SERIAL_BITS)),
        signer.algorithm,
        signer.name,
        der.sequence(der.time(now - _BACKDATING), der.time(now + valid)),
        subject,
        key.public,
        der.explicit(3, der.sequence(*extensions)),
    )
    signature = der.bits(signer.sign(content))
    return der.pem("CERTIFICATE", der.sequence(content, signer.algorithm, signature))


def _name(common: str, organisations: Sequence[str] = ()) -> bytes:
    parts = [(_ORGANISATION, each) for each in organisations]
    parts.append((_COMMON_NAME, common[:_LONGEST_NAME]))
    return der.sequence(*(der.set_of(der.sequence(kind, der.utf8(text))) for kind, text in parts))


def _host(name: str) -> bytes:
    try:
        return der.implicit(7, ip_address(name).packed)
    except ValueError:
        return der.implicit(2, name.encode("ascii"))


def _extension(oid: str, value: bytes, *, critical: bool = False) -> bytes:
    return der.sequence(der.oid(oid), der.TRUE if critical else b"", der.octets(value))


def _read(pem: KeyPair) -> Signer:
    # Imported lazily: a server that creates its own CA does not need these modules.
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem.key, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ValueError("the key of the certificate authority is neither ECDSA nor RSA")

    def sign(data: bytes) -> bytes:
        if isinstance(key, rsa.RSAPrivateKey):
            return key.sign(data, padding.PKCS1v15(), SHA256())
        return key.sign(data, ec.ECDSA(SHA256()))

    name = x509.load_pem_x509_certificate(pem.cert).subject.public_bytes()
    key_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest
    return Signer(
        name, key_id, _RSA_SHA256 if isinstance(key, rsa.RSAPrivateKey) else _ECDSA_SHA256, sign
    )
