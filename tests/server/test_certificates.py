"""Certificates of our own: kept over restarts, made anew when they do not fit."""

from __future__ import annotations

import os
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from instar.certificates import Authority, KeyPair
from instar.server.files.certificates import ensure_certificates, server_context

_DAY = timedelta(days=1)


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    """Both sides in memory; raises what either of them thinks of the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_a_client_that_trusts_the_authority_reaches_the_server_by_every_name(
    tmp_path: Path,
) -> None:
    made = ensure_certificates(tmp_path, ["localhost", "127.0.0.1", "::1"])
    client = ssl.create_default_context(cafile=str(made.ca))
    client.load_cert_chain(made.admin_cert, made.admin_key)
    server = server_context(made, ())

    for host in ("localhost", "127.0.0.1", "::1"):
        _handshake(server, client, host)
    with pytest.raises(ssl.SSLCertVerificationError):
        _handshake(server, client, "elsewhere")


def test_a_restart_finds_everything_and_other_names_keep_the_authority(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, ["a"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    ensure_certificates(tmp_path, ["a"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    ensure_certificates(tmp_path, ["a", "b"])
    assert first.ca.read_bytes() == before["ca.crt"]
    assert first.server_cert.read_bytes() != before["server.crt"]


@pytest.mark.parametrize("gone", ["ca.key", "server.key", "admin.crt"])
def test_what_is_missing_is_made_and_all_fits_together(tmp_path: Path, gone: str) -> None:
    ensure_certificates(tmp_path, ["a"])
    (tmp_path / gone).unlink()

    made = ensure_certificates(tmp_path, ["a"])

    client = ssl.create_default_context(cafile=str(made.ca))
    client.load_cert_chain(made.admin_cert, made.admin_key)
    _handshake(server_context(made, ()), client, "a")


def test_certificates_are_renewed_a_month_before_they_end(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path, ["a"])
    before = made.server_cert.read_bytes()
    ends = x509.load_pem_x509_certificate(before).not_valid_after_utc.timestamp()
    long_ago = made.server_cert.stat().st_mtime - 336 * _DAY.total_seconds()
    os.utime(made.server_cert, (long_ago, long_ago))

    ensure_certificates(tmp_path, ["a"])

    after = x509.load_pem_x509_certificate(made.server_cert.read_bytes())
    assert after.not_valid_after_utc.timestamp() >= ends
    assert made.server_cert.read_bytes() != before


def test_an_authority_with_an_rsa_key_signs_too_and_other_keys_are_refused() -> None:
    cert = Authority.make("x", _DAY).pem.cert
    keys = (rsa.generate_private_key(65537, 2048), ed25519.Ed25519PrivateKey.generate())
    fits, other = (
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) for key in keys
    )

    issued = Authority(KeyPair(cert, fits)).client("someone", ("some",), _DAY)

    subject = x509.load_pem_x509_certificate(issued.cert).subject
    assert subject.rfc4514_string() == "CN=someone,O=some"
    with pytest.raises(ValueError, match="neither ECDSA nor RSA"):
        Authority(KeyPair(cert, other))
