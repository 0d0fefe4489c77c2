"""Trusted token issuers, from an AuthenticationConfiguration file or from ``--oidc-…`` flags.

``identities.py`` imports it only if such a file or flag is given. The issuers are in
``identity/oidc``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from instar.server.files.config_files import read_configuration
from instar.server.identity.oidc.config import Authentication, InvalidAuthentication, read_config
from instar.server.identity.oidc.flags import issuer_of_flags
from instar.server.identity.oidc.flags_set import is_given
from instar.server.identity.oidc.trusted_issuers import TrustedIssuers

_FILE_DESCRIPTION = "authentication configuration"


def load_trusted(
    path: Path | None, flags: Mapping[str, Any], own: tuple[str, ...], audiences: tuple[str, ...]
) -> TrustedIssuers | None:
    """Raises ``ValueError``. ``own``: names this server issues tokens as."""
    if path is None:
        issuer = issuer_of_flags(flags, own)
        if issuer is None:
            return None
        return TrustedIssuers(Authentication((issuer,)), audiences)
    if is_given(flags):
        raise ValueError("authentication-config file and oidc-* flags are mutually exclusive")

    def load() -> Authentication:
        file = read_configuration(path, _FILE_DESCRIPTION)
        try:
            return read_config(file.document, own)
        except InvalidAuthentication as trouble:
            raise file.refused(str(trouble)) from trouble

    return TrustedIssuers(load(), audiences, load=load)
