"""Checks that a webhook's ``caBundle`` contains a CA certificate, with upstream's messages.

Called by ``conversion.py`` and ``options.py``, and by ``kube/crds/conditions.py`` for the
Established condition.
"""

from __future__ import annotations

import base64
import binascii
import re

from instar.kube.api.encoding.pem import blocks

_HEADER = re.compile(rb"^[^\n:]+:", re.MULTILINE)


def ca_bundle_problem(bundle: str) -> str | None:
    """Return the error text; None for a usable or an empty bundle (base64 as in the API)."""
    if not bundle:
        return None
    try:
        pem = base64.b64decode(bundle)
    except binascii.Error:
        pem = b""
    certificates = _certificate_blocks(pem)
    if any(_parses(body) for body in certificates):
        return None
    return f"unable to load root certificates: {_problem_text(pem, certificates)}"


def _certificate_blocks(pem: bytes) -> list[bytes]:
    return [
        block.body
        for block in blocks(pem)
        if block.type == b"CERTIFICATE" and not _HEADER.search(block.body)
    ]


def _parses(body: bytes) -> bool:
    # Imported lazily: most servers never see a bundle, and this import is slow.
    from cryptography import x509

    try:
        x509.load_der_x509_certificate(base64.b64decode(body, validate=False))
    except ValueError:
        return False
    return True


def _problem_text(pem: bytes, certificates: list[bytes]) -> str:
    if certificates:
        return "failed to parse certificate: x509: malformed certificate"
    if sum(block.end - block.start for block in blocks(pem)) < len(pem):
        return "unable to parse bytes as PEM block"
    return "no valid certificate authority data seen"
