"""A CA and certificates of our own, made once and kept: TLS without asking anybody.

``cryptography`` is imported only when something must be made: a restart with certificates at
hand does not pay for it.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256

_VALID = timedelta(days=365)
_RENEW = timedelta(days=30)
_CA_VALID = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files."""

    ca: Path
    server_cert: Path
    server_key: Path
    admin_cert: Path
    admin_key: Path


def ensure_certificates(folder: Path, names: Sequence[str]) -> Certificates:
    """Certificates in ``folder`` for ``names``; made or renewed where missing or unfit."""
    found = Certificates(
        folder / "ca.crt",
        folder / "server.crt",
        folder / "server.key",
        folder / "admin.crt",
        folder / "admin.key",
    )
    wanted = "\n".join(names)
    stamp = folder / "server.names"
    if not all(path.exists() for path in (found.ca, folder / "ca.key")):
        _make_ca(folder)
    fresh = (
        found.server_cert.exists()
        and found.admin_cert.exists()
        and stamp.exists()
        and stamp.read_text() == wanted
        and _valid_for_long(found.server_cert)
    )
    if not fresh:
        _make_leaves(folder, found, names)
        stamp.write_text(wanted)
    return found


def server_context(certificates: Certificates, extra_client_ca: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificates.server_cert, certificates.server_key)
    context.load_verify_locations(certificates.ca)
    if extra_client_ca is not None:
        context.load_verify_locations(extra_client_ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def write_private(path: Path, data: bytes) -> None:
    """Atomically, readable by the owner only."""
    # Nobody can have made it before us: the name is random, and an existing file is not opened.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _valid_for_long(path: Path) -> bool:
    """By the file's own age: certificates here always live a year."""
    made = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return datetime.now(UTC) < made + _VALID - _RENEW


def _make_ca(folder: Path) -> None:
    from cryptography import x509

    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    key = _new_key()
    name = _name("instar-ca")
    certificate = (
        _builder(name, name, key, _CA_VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, _hash())
    )
    write_private(folder / "ca.key", _key_pem(key))
    write_private(folder / "ca.crt", _pem(certificate))


def _make_leaves(folder: Path, found: Certificates, names: Sequence[str]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID

    ca_key = load_pem_private_key((folder / "ca.key").read_bytes(), None)
    ca = x509.load_pem_x509_certificate(found.ca.read_bytes())
    leaves = (
        (_name("instar"), ExtendedKeyUsageOID.SERVER_AUTH, found.server_cert, found.server_key),
        (
            _name("kubernetes-admin", "system:masters"),
            ExtendedKeyUsageOID.CLIENT_AUTH,
            found.admin_cert,
            found.admin_key,
        ),
    )
    for subject, usage, cert_path, key_path in leaves:
        key = _new_key()
        builder = (
            _builder(subject, ca.subject, key, _VALID)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(_key_usage(signs=False), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(
                    ca_key.public_key()  # type: ignore[arg-type]
                ),
                critical=False,
            )
        )
        if usage == ExtendedKeyUsageOID.SERVER_AUTH:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(name) for name in names]), False
            )
        certificate = builder.sign(ca_key, _hash())  # type: ignore[arg-type]
        write_private(key_path, _key_pem(key))
        write_private(cert_path, _pem(certificate))


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _hash() -> SHA256:
    from cryptography.hazmat.primitives import hashes

    return hashes.SHA256()


def _name(common: str, organisation: str = "") -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organisation:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(attributes)


def _alternative(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, valid: timedelta
) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + valid)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

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


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
