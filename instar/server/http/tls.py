"""The server's end of TLS: versions and ciphers as flags name them, files read again when changed.

A certificate lives shorter than a server. New handshakes use what lies in the files now; open
connections go on; a pair that does not fit together changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

log = logging.getLogger(__name__)
_LOOK_SECONDS = 5.0

VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_FIXED = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Of TLS 1.3, which has no others: named or not, they are offered."""
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
    """Raises ``ValueError`` in upstream's words."""
    if name not in VERSIONS:
        raise ValueError(f'unknown tls version "{name}"')
    return VERSIONS[name]


def cipher_string(names: Sequence[str]) -> str:
    """IANA's names as OpenSSL has them; empty where only those of TLS 1.3 are named. Raises
    ``ValueError`` in upstream's words."""
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
    """A context that is made anew when one of its files has changed."""

    def __init__(self, make: Callable[[], ssl.SSLContext], files: Sequence[Path]) -> None:
        """Raises what ``make`` raises."""
        self._make, self._files = make, tuple(files)
        self._digest = self._seen = _digest(self._files)
        self._current = make()

    def context(self) -> ssl.SSLContext:
        """For a connection that comes now."""
        return self._current

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await asyncio.to_thread(self.look)

    def look(self) -> bool:
        """Whether other files are in use now."""
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
    """Empty while one of them is missing: somebody is about to put another in its place."""
    digest = hashlib.sha256()
    try:
        for file in files:
            content = file.read_bytes()
            digest.update(len(content).to_bytes(8, "big") + content)
    except OSError:
        return ""
    return digest.hexdigest()
