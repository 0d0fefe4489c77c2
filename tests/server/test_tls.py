"""TLS as flags name it, and certificates that change while the server runs."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from instar.server.http.tls import ReloadingContext, cipher_string, minimum_version
from instar.server.settings import TlsSettings
from tests.support.server import LiveServer, live_server


def write_pair(folder: Path, authority: trustme.CA, name: str) -> TlsSettings:
    made = authority.issue_cert(name, "127.0.0.1")
    cert, key = folder / "tls.crt", folder / "tls.key"
    made.private_key_pem.write_to_path(key)
    cert.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    return TlsSettings(cert=cert, key=key)


def shaken(server: LiveServer, context: ssl.SSLContext) -> ssl.SSLSocket:
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    plain = socket.create_connection((parts.hostname, parts.port or 0), timeout=10)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def names(tls: ssl.SSLSocket) -> list[str]:
    shown: Any = tls.getpeercert()
    return [value for _, value in shown["subjectAltName"]]


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_a_changed_certificate_is_served_without_a_restart_and_open_connections_continue(
    tmp_path: Path, authority: trustme.CA, trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("instar.server.http.tls._CHECK_SECONDS", 0.05)
    with live_server(tls=write_pair(tmp_path, authority, "one.example")) as server:
        old = shaken(server, trusting)
        write_pair(tmp_path, authority, "two.example")
        for _ in range(200):
            with shaken(server, trusting) as new:
                found = names(new)
            if "two.example" in found:
                break
        old.sendall(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = old.recv(100)
        kept = names(old)
        old.close()

    assert "two.example" in found
    assert "one.example" in kept
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_pair_that_does_not_fit_changes_nothing(tmp_path: Path, authority: trustme.CA) -> None:
    pair = write_pair(tmp_path, authority, "one.example")
    assert pair.cert is not None
    assert pair.key is not None
    cert, key = pair.cert, pair.key

    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        return context

    reloaded = ReloadingContext(make, [cert, key])
    authority.issue_cert("other").private_key_pem.write_to_path(key)
    assert not reloaded.look()
    cert.unlink()
    assert not reloaded.look()
    write_pair(tmp_path, authority, "two.example")

    assert reloaded.look()
    assert not reloaded.look()


@pytest.fixture
def modern(tmp_path: Path, authority: trustme.CA) -> Iterator[LiveServer]:
    pair = write_pair(tmp_path, authority, "one.example")
    settings = TlsSettings(cert=pair.cert, key=pair.key, minimum="VersionTLS13")
    with live_server(tls=settings) as server:
        yield server


def test_a_returning_client_may_resume_its_tls_session(
    modern: LiveServer, trusting: ssl.SSLContext
) -> None:
    """And the ticket is what makes a client without TCP_NODELAY send its first request at once."""
    with shaken(modern, trusting) as first:
        first.sendall(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n")
        assert first.recv(100)
        session = first.session
    parts = urlsplit(modern.url)
    plain = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10)
    with trusting.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as again:
        reused = again.session_reused

    assert session is not None
    assert session.has_ticket
    assert reused


def test_a_client_below_the_least_version_is_refused(
    modern: LiveServer, trusting: ssl.SSLContext
) -> None:
    with shaken(modern, trusting) as tls:
        assert tls.version() == "TLSv1.3"
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2

    with pytest.raises(ssl.SSLError):
        shaken(modern, trusting)


def test_only_named_suites_are_offered(
    tmp_path: Path, authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    pair = write_pair(tmp_path, authority, "one.example")
    suites = tuple(f"TLS_ECDHE_{kind}_WITH_AES_256_GCM_SHA384" for kind in ("ECDSA", "RSA"))
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    with live_server(tls=TlsSettings(cert=pair.cert, key=pair.key, ciphers=suites)) as server:
        with shaken(server, trusting) as tls:
            chosen = tls.cipher()
        trusting.set_ciphers("ECDHE+AES128")
        with pytest.raises(ssl.SSLError):
            shaken(server, trusting)

    assert chosen is not None
    assert chosen[0].endswith("AES256-GCM-SHA384")


def test_every_suite_of_go_that_openssl_has_can_be_named() -> None:
    strong = [
        *(f"TLS_ECDHE_{kind}_WITH_AES_128_GCM_SHA256" for kind in ("ECDSA", "RSA")),
        *(f"TLS_ECDHE_{kind}_WITH_CHACHA20_POLY1305_SHA256" for kind in ("ECDSA", "RSA")),
        "TLS_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_AES_128_GCM_SHA256",
    ]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    context.set_ciphers(cipher_string(strong))

    offered = {each["name"] for each in context.get_ciphers()}
    assert {"ECDHE-RSA-CHACHA20-POLY1305", "AES128-GCM-SHA256"} <= offered


def test_unknown_tls_names_are_refused_with_upstreams_message() -> None:
    with pytest.raises(ValueError, match="Cipher suite TLS_X not supported or doesn't exist"):
        cipher_string(["TLS_X"])
    with pytest.raises(ValueError, match='unknown tls version "VersionTLS9"'):
        minimum_version("VersionTLS9")
