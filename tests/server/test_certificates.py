"""Certificates of our own: kept over restarts, made anew when they do not fit."""

from __future__ import annotations

import os
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from instar.base import der
from instar.base.certificates import Authority, KeyPair, new_private_key
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


def test_an_authority_of_clients_need_not_be_the_first_of_its_chain(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path, ["localhost"])
    between = trustme.CA().create_child_ca()
    authority, pair = tmp_path / "between.crt", tmp_path / "client.pem"
    authority.write_bytes(between.cert_pem.bytes())
    between.issue_cert("me@example.com").private_key_and_cert_chain_pem.write_to_path(pair)
    client = ssl.create_default_context(cafile=str(made.ca))
    client.load_cert_chain(pair)

    _handshake(server_context(made, [authority]), client, "localhost")
    with pytest.raises(ssl.SSLCertVerificationError):
        _handshake(server_context(made, ()), client, "localhost")


def test_a_handshake_looks_nothing_up_and_leaves_one_ticket(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path, ["localhost"])

    shown = x509.load_pem_x509_certificates(made.server_cert.read_bytes())

    assert [x509.load_pem_x509_certificate(made.ca.read_bytes())] == shown[1:]
    assert server_context(made, ()).num_tickets == 1


def test_a_restart_finds_everything_and_other_names_keep_the_authority(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, ["a"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    ensure_certificates(tmp_path, ["a"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    ensure_certificates(tmp_path, ["a", "b"])
    assert first.ca.read_bytes() == before["ca.crt"]
    assert first.server_cert.read_bytes() != before["server.crt"]


@pytest.mark.parametrize("gone", ["ca.key", "server.key", "admin.crt"])
def test_missing_certificates_are_created_and_fit_together(tmp_path: Path, gone: str) -> None:
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


def test_our_der_encoder_writes_what_the_library_writes() -> None:
    authority = Authority.make("an authority", timedelta(days=40_000))  # beyond 2049
    pairs = [
        authority.pem,
        authority.server("x" * 70, ["localhost", "10.0.0.1", "::1", "a.example.com"] * 20, _DAY),
        authority.client("jürgen", ("one", "two"), _DAY),
    ]

    for pair in pairs:
        ours = x509.load_pem_x509_certificate(pair.cert)
        theirs = _rebuilt(ours).sign(_private(authority.pem.key), SHA256())
        assert ours.tbs_certificate_bytes == theirs.tbs_certificate_bytes
        assert ours.public_bytes(Encoding.PEM) == pair.cert
        assert ours.public_key() == _private(pair.key).public_key()
        ours.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.pem.cert))


def test_an_authority_read_from_a_file_signs_as_the_one_that_was_made() -> None:
    made = Authority.make("x", _DAY)

    issued = Authority(made.pem).server("a", ["a"], _DAY)

    certificate = x509.load_pem_x509_certificate(issued.cert)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(made.pem.cert))
    theirs = _rebuilt(certificate).sign(_private(made.pem.key), SHA256())
    assert certificate.tbs_certificate_bytes == theirs.tbs_certificate_bytes


def test_a_private_key_is_written_as_the_library_writes_it() -> None:
    text = new_private_key()

    again = _private(text).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    assert text == again


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (der.integer(0), "020100"),
        (der.integer(127), "02017f"),
        (der.integer(128), "02020080"),
        (der.octets(b"x" * 128), "048180" + "78" * 128),
        (der.octets(b"x" * 300), "0482012c" + "78" * 300),
        (der.oid("2.5.4.3"), "0603550403"),
        (der.oid("1.2.840.113549"), "06062a864886f70d"),
    ],
)
def test_lengths_and_numbers_take_as_few_bytes_as_they_can(written: bytes, wanted: str) -> None:
    assert written.hex() == wanted


def test_a_host_that_no_certificate_can_name_is_refused() -> None:
    with pytest.raises(ValueError, match="ascii"):
        Authority.make("x", _DAY).server("x", ["bücher.example"], _DAY)


def _rebuilt(certificate: x509.Certificate) -> x509.CertificateBuilder:
    """All that is in it, for the library to write."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(certificate.subject)
        .issuer_name(certificate.issuer)
        .public_key(certificate.public_key())
        .serial_number(certificate.serial_number)
        .not_valid_before(certificate.not_valid_before_utc)
        .not_valid_after(certificate.not_valid_after_utc)
    )
    for extension in certificate.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return builder


def _private(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key
