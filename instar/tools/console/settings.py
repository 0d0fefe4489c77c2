"""What an operator can set about the console of a server; imported by every start."""

from __future__ import annotations

from pathlib import Path

from instar.base.fast_dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class OidcSettings:
    issuer: str
    client: str
    authority: Path | None = None
    """PEM; None: whom the system trusts."""
    secret: Path | None = None
    """Of a client that has one; PKCE is used in any case."""
    scopes: str = "openid profile email"
