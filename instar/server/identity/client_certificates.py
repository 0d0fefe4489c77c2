"""User of a client certificate: CN is the user name, each O is a group.

``access/peer_certificates.py`` calls it; TLS has verified the certificate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from instar.kube.access.attributes import AUTHENTICATED, User
from instar.server.identity.service_accounts import CREDENTIAL_ID

_UID = "1.3.6.1.4.1.57683.2"
_AUTHENTICATION_GROUPS = ("system:authenticated", "system:unauthenticated")
"""A user in one of these groups gets no further group."""


def user_of_certificate(certificate: Mapping[str, Any] | None, der: bytes | None) -> User | None:
    """Return the user of ``getpeercert()`` (dict and DER); None for a certificate without a CN."""
    if not certificate:
        return None
    pairs: Iterable[tuple[str, str]] = (
        pair for relative in certificate.get("subject", ()) for pair in relative
    )
    name, groups, uids = "", [], []
    for key, value in pairs:
        if key == "commonName":
            name = value
        elif key == "organizationName":
            groups.append(value)
        elif key == _UID:
            uids.append(value)
    if not name or len(uids) > 1 or uids == [""]:
        return None
    extra = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)} if der else {}
    return User(name, with_authenticated(name, tuple(groups)), uids[0] if uids else "", extra)


def with_authenticated(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Add ``system:authenticated`` to the groups, except for the anonymous user."""
    if name == "system:anonymous" or any(group in groups for group in _AUTHENTICATION_GROUPS):
        return groups
    return (*groups, AUTHENTICATED)
