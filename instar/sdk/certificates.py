"""A certificate authority of one: a CA and a server certificate made on the spot.

For webhooks without cert-manager. The CA's key is thrown away, so what it signed is all it
will ever sign.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509

VALID_DAYS = 3650


@dataclass(frozen=True, slots=True)
class Issued:
    """PEM texts; ``bundle`` is the CA in base64, as a CRD's ``caBundle`` wants it."""

    cert: bytes
    key: bytes
    ca: bytes

    @property
    def bundle(self) -> str:
        return base64.b64encode(self.ca).decode()

    def write(self, cert: Path, key: Path) -> None:
        cert.write_bytes(self.cert)
        key.touch(mode=0o600)
        key.chmod(0o600)
        key.write_bytes(self.key)


def names_for(host: str) -> list[str]:
    """A service is asked for as ``name.namespace.svc``; the longer form costs nothing."""
    return [host, f"{host}.cluster.local"] if host.endswith(".svc") else [host]


def self_signed(host: str, *, days: int = VALID_DAYS) -> Issued:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = datetime.datetime.now(datetime.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "instar webhook CA")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])

    def builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=days))
        )

    ca_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        builder(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_signing_only(), critical=True)
        .add_extension(ca_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    cert = (
        builder(name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(_alternatives(host)), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return Issued(
        cert=cert.public_bytes(pem),
        key=key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        ca=ca.public_bytes(pem),
    )


def _alternatives(host: str) -> list[x509.GeneralName]:
    from cryptography import x509

    try:
        return [x509.IPAddress(ipaddress.ip_address(host))]
    except ValueError:
        return [x509.DNSName(name) for name in names_for(host)]


def _signing_only() -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
