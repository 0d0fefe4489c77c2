"""Whether a certificate and a private key, both PEM, belong together.

Called by the Secret strategy, which warns about Secrets of type ``kubernetes.io/tls`` with the
texts of Go's ``crypto/tls``. The library for certificates is loaded with the first such Secret,
because importing it takes a sixth of the time of a first start.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final

_BLOCK = re.compile(
    rb"^-----BEGIN (?P<type>[^\n]*?)-----[ \t]*\r?\n"
    rb"(?P<body>.*?)"
    rb"^-----END (?P=type)-----[ \t]*\r?$",
    re.DOTALL | re.MULTILINE,
)
_HEADERS = re.compile(rb"\A(?:[^\n:]+:[^\n]*\n)+\n?")
_CERTIFICATE: Final = "CERTIFICATE"
_KEY: Final = "PRIVATE KEY"


def mismatch(certificates: bytes, keys: bytes) -> str | None:
    """Return why a TLS server could not use the first certificate with the first key."""
    leaf, skipped = _first(certificates, lambda name: name == _CERTIFICATE)
    if leaf is None:
        return _no_certificate(skipped)
    key, skipped = _first(keys, lambda name: name == _KEY or name.endswith(f" {_KEY}"))
    if key is None:
        return _no_private_key(skipped)
    # Imported here: see the docstring of the module.
    from instar.kube.builtin_rules.advice.tls_keys import difference

    return difference(leaf, key)


def _no_certificate(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith(_KEY):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private "
            "key; PEM inputs may have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM '
        f"blocks of the following types: [{' '.join(skipped)}]"
    )


def _no_private_key(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in key input"
    if skipped == [_CERTIFICATE]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after '
        f"skipping PEM blocks of the following types: [{' '.join(skipped)}]"
    )


def _first(text: bytes, wanted: Callable[[str], bool]) -> tuple[bytes | None, list[str]]:
    """Return the content of the first wanted block, else None, and the types of those before it."""
    skipped: list[str] = []
    for name, content in _blocks(text):
        if wanted(name):
            return content, skipped
        skipped.append(name)
    return None, skipped


def _blocks(text: bytes) -> Iterator[tuple[str, bytes]]:
    for found in _BLOCK.finditer(text):
        body = _HEADERS.sub(b"", found["body"])
        try:
            content = base64.b64decode(b"".join(body.split()), validate=True)
        except binascii.Error:
            continue
        yield found["type"].decode(errors="replace"), content
