"""CA and certificates of a server in a folder: made at the first start, renewed when needed.

``lifecycle/credentials.py`` calls it at the start. X.509 itself is in ``base/certificates.py``.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path

from instar.base.fast_dataclass import dataclass
from instar.base.text_files import read_text
from instar.server.http.tls import PROTOCOLS

_VALIDITY = timedelta(days=365)
_RENEWAL_MARGIN = timedelta(days=30)
"""Certificates are renewed this long before they expire."""
_CA_VALIDITY = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files."""

    ca: Path
    server_cert: Path
    server_key: Path
    admin_cert: Path
    admin_key: Path


PROXY_NAME = "front-proxy-client"
"""Common name of the certificate with which this server calls backends."""


@dataclass(frozen=True, slots=True)
class ProxyCertificate:
    """Paths of PEM files. The CA signs nothing but this certificate: a backend that trusts it
    lets its holder name any user."""

    ca: Path
    cert: Path
    key: Path


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
    fresh = (
        all(path.exists() for path in (*astuple(found), folder / "ca.key", stamp))
        and read_text(stamp) == wanted
        and _valid_for_long(found.server_cert)
    )
    if not fresh:
        _make(folder, found, names)
        stamp.write_text(wanted, encoding="utf-8")
    return found


def server_context(
    certificates: Certificates,
    client_cas: Sequence[Path],
    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    ciphers: str = "",
    protocols: Sequence[str] = PROTOCOLS,
) -> ssl.SSLContext:
    """TLS context of the port. ``client_cas`` are CAs of clients besides the server's own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with warnings.catch_warnings():
        # Python warns of TLS 1.0 and 1.1, which the operator has chosen.
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = minimum
    if ciphers:
        context.set_ciphers(ciphers)
    try:
        context.load_cert_chain(certificates.server_cert, certificates.server_key)
    except (ssl.SSLError, OSError) as error:
        raise ValueError(f"serving certificate {certificates.server_cert}: {error}") from error
    context.load_verify_locations(certificates.ca)
    for path in client_cas:
        try:
            context.load_verify_locations(path)
        except (ssl.SSLError, OSError) as error:
            raise ValueError(f"client CA {path}: {error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL
    # As in Go: a given CA is trusted also without the CA that signed it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(list(protocols))
    # One, as Go gives: each is a tenth of a handshake, and hardly a client resumes. With none
    # nothing would answer the client's last word, and a client with Nagle's algorithm would keep
    # its first request back until the kernel acknowledges that word by itself, 40 ms later.
    context.num_tickets = 1
    return context


def user_certificate(folder: Path, user: str, groups: Sequence[str]) -> tuple[bytes, bytes]:
    """Certificate and key of a client, signed by the authority in ``folder``."""
    # Imported here: few servers make certificates for users.
    from instar.base.certificates import Authority, KeyPair

    authority = Authority(
        KeyPair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    )
    return authority.client(user, groups, _VALIDITY)


def ensure_proxy_certificate(folder: Path) -> ProxyCertificate:
    """The certificate with which this server calls backends, and its CA; made or renewed in
    ``folder`` where missing or old."""
    found = ProxyCertificate(
        folder / "front-proxy-ca.crt",
        folder / "front-proxy-client.crt",
        folder / "front-proxy-client.key",
    )
    key = folder / "front-proxy-ca.key"
    there = all(path.exists() for path in (*astuple(found), key))
    if there and _valid_for_long(found.cert):
        return found
    # Imported here: a restart that finds its certificates does not need ``cryptography``.
    from instar.base.certificates import Authority, KeyPair

    if found.ca.exists() and key.exists():
        authority = Authority(KeyPair(found.ca.read_bytes(), key.read_bytes()))
    else:
        authority = Authority.make("instar-front-proxy-ca", _CA_VALIDITY)
        write_private(key, authority.pem.key)
        write_private(found.ca, authority.pem.cert)
    client = authority.client(PROXY_NAME, (), _VALIDITY)
    write_private(found.key, client.key)
    write_private(found.cert, client.cert)
    return found


def write_private(path: Path, data: bytes) -> None:
    """Write a file atomically, readable by its owner only."""
    # The name is random and an existing file is not opened, so no other process can have made it.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _valid_for_long(path: Path) -> bool:
    """Decided by the age of the file: certificates made here are valid for a year."""
    made = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return datetime.now(UTC) < made + _VALIDITY - _RENEWAL_MARGIN


def _make(folder: Path, found: Certificates, names: Sequence[str]) -> None:
    # Imported here: a restart that finds its certificates does not need ``cryptography``.
    from instar.base.certificates import Authority, KeyPair

    key = folder / "ca.key"
    if found.ca.exists() and key.exists():
        authority = Authority(KeyPair(found.ca.read_bytes(), key.read_bytes()))
    else:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        authority = Authority.make("instar-ca", _CA_VALIDITY)
        write_private(key, authority.pem.key)
        write_private(found.ca, authority.pem.cert)
    server = authority.server("instar", names, _VALIDITY)
    admin = authority.client("kubernetes-admin", ("system:masters",), _VALIDITY)
    for path, pem in (
        (found.server_key, server.key),
        # With the CA appended: OpenSSL would look it up for every client.
        (found.server_cert, server.cert + authority.pem.cert),
        (found.admin_key, admin.key),
        (found.admin_cert, admin.cert),
    ):
        write_private(path, pem)
