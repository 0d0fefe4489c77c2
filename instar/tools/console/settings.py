"""Settings of the console that ``instar serve`` passes in; the module is small, because every
server start imports it.
"""

from __future__ import annotations

from pathlib import Path

from instar.base.fast_dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class OidcSettings:
    """Issuer and client by which users sign in."""

    issuer: str
    client: str
    authority: Path | None = None
    """CA bundle, PEM; None: the system's CAs."""
    secret: Path | None = None
    """File with the client secret, if the client has one; PKCE is always used."""
    scopes: str = "openid profile email"
