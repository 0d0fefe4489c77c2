"""Whether a certificate and a private key, both PEM, belong together.

Called by the Secret strategy, which warns about Secrets of type ``kubernetes.io/tls`` with the
texts of Go's ``crypto/tls``. The library for certificates is loaded with the first such Secret,
because importing it takes a sixth of the time of a first start.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from itertools import dropwhile
from typing import Final

from instar.kube.api.encoding.pem import Block, blocks

_END_MARK: Final = b"-----END -----"
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
    for block in blocks(text):
        if not _begins_lines(text, block):
            continue
        try:
            content = base64.b64decode(_without_headers(block.body), validate=True)
        except binascii.Error:
            continue
        yield block.type.decode(errors="replace"), content


def _begins_lines(text: bytes, block: Block) -> bool:
    """Whether both marks of the block stand at the beginning of a line."""
    closing = block.end - len(block.type) - len(_END_MARK)
    return all(at == 0 or text[at - 1 : at] == b"\n" for at in (block.start, closing))


def _without_headers(body: bytes) -> bytes:
    """Return the base64 text behind the lines that say how a key is encrypted."""
    lines = dropwhile(lambda line: b":" in line, body.splitlines())
    return b"".join(b"".join(lines).split())
