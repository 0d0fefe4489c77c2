"""An authority of our own and what it signs, as PEM texts. Knows no file.

Imports ``cryptography``, which takes longer than all the rest of a small tool: whoever does not
always make certificates imports this module where it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_EARLIER = timedelta(hours=1)
"""Certificates are valid since then: clocks differ."""
_LONGEST_NAME = 64


class KeyPair(NamedTuple):
    cert: bytes
    key: bytes


class Authority:
    """Who holds its key can sign; who only holds ``pem.cert`` can check."""

    def __init__(self, pem: KeyPair) -> None:
        self.pem = pem
        self._certificate = x509.load_pem_x509_certificate(pem.cert)
        key = load_pem_private_key(pem.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ValueError("the key of the certificate authority is neither ECDSA nor RSA")
        self._key = key

    @classmethod
    def make(cls, name: str, valid: timedelta) -> Authority:
        key, called = _new_key(), _name(name)
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            _builder(called, called, key, valid)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(own, critical=False)
            .sign(key, SHA256())
        )
        return cls(_pem(certificate, key))

    def server(self, name: str, hosts: Sequence[str], valid: timedelta) -> KeyPair:
        """For a server that is reached under any of ``hosts``, names or addresses."""
        hosted = x509.SubjectAlternativeName([_host(each) for each in hosts])
        return self._issue(_name(name), valid, ExtendedKeyUsageOID.SERVER_AUTH, hosted)

    def client(self, user: str, groups: Sequence[str], valid: timedelta) -> KeyPair:
        """Raises ``ValueError`` for names a certificate cannot hold: nobody is to be another."""
        for name in (user, *groups):
            if not 0 < len(name) <= _LONGEST_NAME:
                text = f'"{name}" has {len(name)} characters; a certificate holds 1 to'
                raise ValueError(f"{text} {_LONGEST_NAME}")
        return self._issue(_name(user, groups), valid, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        name: x509.Name,
        valid: timedelta,
        use: x509.ObjectIdentifier,
        *more: x509.ExtensionType,
    ) -> KeyPair:
        key = _new_key()
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(name, self._certificate.subject, key, valid)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
            .add_extension(issuer, critical=False)
        )
        for extension in more:
            builder = builder.add_extension(extension, critical=False)
        return _pem(builder.sign(self._key, SHA256()), key)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(common: str, organisations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organisations]
    attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common[:_LONGEST_NAME]))
    return x509.Name(attributes)


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + valid)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not signs,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
