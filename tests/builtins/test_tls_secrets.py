"""Warnings about Secrets with a certificate and a key, as kube-apiserver 1.36.4 gave them."""

from __future__ import annotations

import datetime
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from instar.kube.builtin_rules.advice import tls_keys
from instar.kube.builtin_rules.advice.tls_pairs import mismatch

OTHER_KEY = "tls: private key does not match public key"
OTHER_KIND = "tls: private key type does not match public key type"
NO_KEY = "tls: failed to parse private key"
NO_CERTIFICATES = "tls: failed to find any PEM data in certificate input"
UNREADABLE = "x509: malformed certificate"
PARAMETERS = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
SKIPPED_CERTIFICATES = (
    'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of '
    "the following types: "
)
SKIPPED_KEYS = (
    'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping '
    "PEM blocks of the following types: "
)


@cache
def private(name: str) -> Any:
    if name.startswith("rsa"):
        return rsa.generate_private_key(65537, 2048)
    if name.startswith("p"):
        return ec.generate_private_key(ec.SECP256R1() if "256" in name else ec.SECP384R1())
    if name == "dsa":
        return dsa.generate_private_key(2048)
    return (x25519.X25519PrivateKey if name == "x25519" else ed25519.Ed25519PrivateKey).generate()


def key(
    name: str,
    form: PrivateFormat = PrivateFormat.PKCS8,
    sealed: KeySerializationEncryption | None = None,
) -> bytes:
    written: bytes = private(name).private_bytes(Encoding.PEM, form, sealed or NoEncryption())
    return written


def old(name: str) -> bytes:
    return key(name, PrivateFormat.TraditionalOpenSSL)


@cache
def cert(name: str, signer: str = "") -> bytes:
    subject = x509.Name([])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder(subject, subject, private(name).public_key(), 1)
    dated = builder.not_valid_before(start).not_valid_after(start + datetime.timedelta(days=9))
    by = private(signer or name)
    digest = None if isinstance(by, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return dated.sign(by, digest).public_bytes(Encoding.PEM)


@cache
def request() -> bytes:
    builder = x509.CertificateSigningRequestBuilder(x509.Name([]))
    return builder.sign(private("p256"), hashes.SHA256()).public_bytes(Encoding.PEM)


def block(name: str, body: str) -> bytes:
    return f"-----BEGIN {name}-----\n{body}-----END {name}-----\n".encode()


CASES: dict[str, Callable[[], tuple[bytes, bytes, str | None]]] = {
    "rsa": lambda: (cert("rsa"), key("rsa"), None),
    "rsa, pkcs1": lambda: (cert("rsa"), old("rsa"), None),
    "rsa, another": lambda: (cert("rsa"), key("rsa2"), OTHER_KEY),
    "ec": lambda: (cert("p256"), key("p256"), None),
    "ec, sec1": lambda: (cert("p256"), old("p256"), None),
    "ec, another": lambda: (cert("p256"), key("p256b"), OTHER_KEY),
    "ec, another curve": lambda: (cert("p256"), key("p384"), OTHER_KEY),
    "ed25519": lambda: (cert("ed"), key("ed"), None),
    "ed25519, another": lambda: (cert("ed"), key("ed2"), OTHER_KEY),
    "rsa with ec": lambda: (cert("rsa"), key("p256"), OTHER_KIND),
    "ec with ed25519": lambda: (cert("p256"), key("ed"), OTHER_KIND),
    "ed25519 with rsa": lambda: (cert("ed"), key("rsa"), OTHER_KIND),
    "x25519 key": lambda: (
        cert("p256"),
        key("x25519"),
        "tls: found unknown private key type in PKCS#8 wrapping",
    ),
    "dsa key": lambda: (cert("p256"), key("dsa"), NO_KEY),
    "dsa certificate": lambda: (
        cert("dsa", "rsa"),
        key("rsa"),
        "tls: unknown public key algorithm",
    ),
    "switched": lambda: (
        key("p256"),
        cert("p256"),
        "tls: failed to find certificate PEM data in certificate input, but did find a private "
        "key; PEM inputs may have been switched",
    ),
    "nothing": lambda: (b"", b"", NO_CERTIFICATES),
    "no key": lambda: (cert("p256"), b"", "tls: failed to find any PEM data in key input"),
    "certificate as key": lambda: (
        cert("p256"),
        cert("p256"),
        "tls: found a certificate rather than a key in the PEM for the private key",
    ),
    "request as certificate": lambda: (
        request(),
        key("p256"),
        f"{SKIPPED_CERTIFICATES}[CERTIFICATE REQUEST]",
    ),
    "request and key": lambda: (
        request() + key("p256"),
        key("p256"),
        f"{SKIPPED_CERTIFICATES}[CERTIFICATE REQUEST PRIVATE KEY]",
    ),
    "request as key": lambda: (cert("p256"), request(), f"{SKIPPED_KEYS}[CERTIFICATE REQUEST]"),
    "two certificates as key": lambda: (
        cert("p256"),
        cert("p256") * 2,
        f"{SKIPPED_KEYS}[CERTIFICATE CERTIFICATE]",
    ),
    "both in both": lambda: (key("p256") + cert("p256"), cert("p256") + key("p256"), None),
    "sealed key": lambda: (
        cert("p256"),
        key("p256", sealed=BestAvailableEncryption(b"secret")),
        NO_KEY,
    ),
    "bytes that are no certificate": lambda: (
        block("CERTIFICATE", "AAAA\n"),
        key("p256"),
        UNREADABLE,
    ),
    "bytes that are no key": lambda: (cert("p256"), block("PRIVATE KEY", "AAAA\n"), NO_KEY),
    "no base64": lambda: (block("CERTIFICATE", "!!!!\n"), key("p256"), NO_CERTIFICATES),
    "empty block": lambda: (block("CERTIFICATE", ""), key("p256"), UNREADABLE),
    "text before": lambda: (b"CN=x\n" + cert("p256"), b"Bag\n" + key("p256"), None),
    "indented": lambda: (cert("p256").replace(b"\n", b"\n  "), key("p256"), NO_CERTIFICATES),
    "carriage returns": lambda: (
        cert("p256").replace(b"\n", b"\r\n"),
        key("p256").replace(b"\n", b"\r\n"),
        None,
    ),
    "chain": lambda: (cert("p256") + cert("rsa"), key("p256"), None),
    "chain the other way": lambda: (cert("rsa") + cert("p256"), key("p256"), OTHER_KIND),
    "no line break at the end": lambda: (cert("p256").rstrip(), key("p256").rstrip(), None),
    "cut": lambda: (cert("p256")[:-10], key("p256"), NO_CERTIFICATES),
    "parameters first": lambda: (cert("p256"), PARAMETERS + old("p256"), None),
    "parameters only": lambda: (cert("p256"), PARAMETERS, f"{SKIPPED_KEYS}[EC PARAMETERS]"),
    "text": lambda: (b"hello", b"world", NO_CERTIFICATES),
}


@pytest.mark.parametrize("case", CASES)
def test_the_warning_is_that_of_kube_apiserver(case: str) -> None:
    certificate, private_key, expected = CASES[case]()

    assert mismatch(certificate, private_key) == expected


def _rsa_key(p: int, q: int, /, **changed: int) -> bytes:
    """Return the DER of an RSA key, whether its numbers fit or not."""
    e, d = 65537, pow(65537, -1, (p - 1) * (q - 1))
    numbers = {
        "version": 0,
        "n": p * q,
        "e": e,
        "d": d,
        "p": p,
        "q": q,
        "dp": d % (p - 1),
        "dq": d % (q - 1),
        "inverse": pow(q, -1, p),
        **changed,
    }
    return _tlv(0x30, b"".join(map(_number, numbers.values())))


def _number(value: int) -> bytes:
    return _tlv(2, value.to_bytes(value.bit_length() // 8 + 1))


def _tlv(tag: int, content: bytes) -> bytes:
    size = len(content)
    octets = size.to_bytes((size.bit_length() + 7) // 8 or 1)
    length = octets if size < 128 else bytes((0x80 | len(octets),)) + octets
    return bytes((tag,)) + length + content


def _pem(content: bytes) -> bytes:
    text = b64encode(content)
    return b"-----BEGIN PRIVATE KEY-----\n" + text + b"\n-----END PRIVATE KEY-----\n"


_P, _Q = 2**2203 - 1, 2**1279 - 1


def test_factors_of_a_key_are_not_tested_for_being_primes_as_in_go() -> None:
    composite = (2**61 - 1) * (2**521 - 1)

    assert mismatch(cert("rsa"), _pem(_rsa_key(composite, _Q))) == OTHER_KEY
    assert mismatch(cert("rsa"), _pem(_rsa_key(_P, _Q))) == OTHER_KEY


@pytest.mark.parametrize("part", ["n", "d", "p", "q", "dp", "dq", "inverse"])
@pytest.mark.parametrize("value", [1, 2, 5])
def test_an_rsa_key_whose_numbers_do_not_fit_is_no_key(part: str, value: int) -> None:
    assert mismatch(cert("rsa"), _pem(_rsa_key(_P, _Q))) == OTHER_KEY
    assert mismatch(cert("rsa"), _pem(_rsa_key(_P, _Q, **{part: value}))) == NO_KEY


@pytest.mark.parametrize("algorithm", ["2a8648ce380401", "2a864886f70d010301", "2a8648ce3e0201"])
def test_keys_whose_public_part_would_have_to_be_computed_are_not_read(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []
    monkeypatch.setattr(tls_keys, "load_der_private_key", lambda key, *_, **__: read.append(key))
    numbers = _tlv(0x30, _number(_P) + _number(_Q) + _number(2))
    named = _tlv(0x30, _tlv(6, bytes.fromhex(algorithm)) + numbers)
    key_ = _tlv(0x30, _number(0) + named + _tlv(4, _number(_Q)))
    long_form = b"\x30\x83\x00" + key_[2:]

    assert mismatch(cert("rsa"), _pem(key_)) == NO_KEY
    assert mismatch(cert("rsa"), _pem(long_form)) == NO_KEY
    assert read == []


def test_a_key_longer_than_any_in_use_is_not_judged() -> None:
    assert mismatch(cert("rsa"), _pem(bytes(20_000))) is None
