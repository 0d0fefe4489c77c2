"""Warnings about Secrets with a certificate and a key, as kube-apiserver 1.36.4 gave them."""

from __future__ import annotations

import datetime
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
