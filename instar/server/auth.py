"""Who is asking: bearer tokens and client certificates. What they may do is ``access/``'s."""

from __future__ import annotations

import csv
import hmac
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from instar.access.attributes import ANONYMOUS, AUTHENTICATED, User
from instar.server.request import Request

_EXTRA_SPACE = (
    "the provided Authorization header contains extra space before the bearer token, and is ignored"
)


class Authenticator:
    """Tokens by exact match; certificates by subject (CN is the user, O the groups)."""

    def __init__(self, tokens: Mapping[str, User], *, anonymous: bool = False) -> None:
        self._nobody = ANONYMOUS if anonymous else None
        self._by_header = {f"Bearer {token}".encode(): user for token, user in tokens.items()}
        self._tokens = dict(tokens)

    def user_of(self, request: Request, peer: User | None) -> User | None:
        header = request.headers.get(b"authorization")
        if header is None:
            return peer or self._nobody
        user = self._by_header.get(header)
        if user is not None:
            return user
        scheme, *rest = header.decode("latin-1").split(" ", 2)
        if scheme.lower() != "bearer" or not rest or not rest[0]:
            if scheme.lower() == "bearer" and any(rest):
                request.warn(_EXTRA_SPACE)
            return peer or self._nobody  # no credential that we know of
        return self.user_of_token(rest[0]) or peer

    def user_of_token(self, token: str) -> User | None:
        """Compared in constant time; for TokenReview too."""
        for known, user in self._tokens.items():
            if hmac.compare_digest(known.encode(), token.encode()):
                return user
        return None


def read_token_file(path: Path) -> dict[str, User]:
    """Kubernetes CSV: ``token,user,uid[,"group1,group2"]``. Raises ``ValueError`` by line."""
    tokens: dict[str, User] = {}
    with path.open(newline="") as lines:
        for number, row in enumerate(csv.reader(lines), start=1):
            if not row:
                continue
            if len(row) < 3 or not row[0] or not row[1]:
                raise ValueError(f'{path}:{number}: expected token,user,uid[,"group1,group2"]')
            groups = tuple(part.strip() for part in row[3].split(",")) if len(row) > 3 else ()
            tokens[row[0]] = User(row[1], (*groups, AUTHENTICATED), row[2])
    return tokens


def user_of_certificate(certificate: Mapping[str, Any] | None) -> User | None:
    """From ``ssl.SSLSocket.getpeercert()``; the TLS layer has verified it already."""
    if not certificate:
        return None
    pairs: Iterable[tuple[str, str]] = (
        pair for relative in certificate.get("subject", ()) for pair in relative
    )
    name, groups = "", []
    for key, value in pairs:
        if key == "commonName":
            name = value
        elif key == "organizationName":
            groups.append(value)
    return User(name, (*groups, AUTHENTICATED)) if name else None
