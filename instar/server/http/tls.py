"""TLS settings of the port: versions and ciphers by flag, certificate files reloaded on change.

``lifecycle/optional_parts.py`` makes the context from settings. New handshakes use the current
files; open connections are not affected. A new certificate that does not match its key is ignored.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

from instar.base.supervision import rest

log = logging.getLogger(__name__)
_CHECK_SECONDS = 5.0
"""Seconds between two checks whether the files have changed."""

VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
PROTOCOLS = ("h2", "http/1.1")
"""Offered in the handshake, the preferred first."""
_FIXED = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Ciphers of TLS 1.3: always offered, whether they are named or not."""
_BULK = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
_EXCHANGES = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "RSA": ""}


def minimum_version(name: str) -> ssl.TLSVersion:
    """Raises ``ValueError`` with kube-apiserver's message."""
    if name not in VERSIONS:
        raise ValueError(f'unknown tls version "{name}"')
    return VERSIONS[name]


def cipher_string(names: Sequence[str]) -> str:
    """IANA names as an OpenSSL cipher list; empty where only ciphers of TLS 1.3 are named. Raises
    ``ValueError`` with kube-apiserver's message."""
    found = []
    for name in names:
        if name in _FIXED:
            continue
        exchange, _, bulk = name.removeprefix("TLS_").partition("_WITH_")
        if exchange not in _EXCHANGES or bulk not in _BULK or not name.startswith("TLS_"):
            raise ValueError(f"Cipher suite {name} not supported or doesn't exist")
        if exchange == "RSA" and bulk.startswith("CHACHA20"):
            raise ValueError(f"Cipher suite {name} not supported or doesn't exist")
        found.append(_EXCHANGES[exchange] + _BULK[bulk])
    return ":".join(found)


class ReloadingContext:
    """A TLS context that is reloaded when one of its files has changed."""

    def __init__(self, make: Callable[[], ssl.SSLContext], files: Sequence[Path]) -> None:
        """Raises what ``make`` raises."""
        self._make, self._files = make, tuple(files)
        self._digest = self._seen = _digest(self._files)
        self._current = make()

    def context(self) -> ssl.SSLContext:
        """The context for a new connection."""
        return self._current

    def replace(self, other: ReloadingContext) -> None:
        """Use the context and the files of another one from now on."""
        self._make, self._files = other._make, other._files
        self._digest, self._seen, self._current = other._digest, other._seen, other._current

    async def run(self) -> None:
        while True:
            await rest(_CHECK_SECONDS)
            await asyncio.to_thread(self.look)

    def look(self) -> bool:
        """Reload if files have changed. Returns whether a new context is in use."""
        digest = _digest(self._files)
        if digest == self._seen or not digest:
            return False
        self._seen = digest
        try:
            self._current = self._make()
        except (ValueError, OSError) as error:  # ssl.SSLError is an OSError
            log.error("changed certificates cannot be used, the former ones stay: %s", error)
            return False
        log.info("changed certificates are in use")
        return True


def _digest(files: Sequence[Path]) -> str:
    """A digest of the files; empty while one is missing because it is being replaced."""
    digest = hashlib.sha256()
    try:
        for file in files:
            content = file.read_bytes()
            digest.update(len(content).to_bytes(8, "big") + content)
    except OSError:
        return ""
    return digest.hexdigest()
