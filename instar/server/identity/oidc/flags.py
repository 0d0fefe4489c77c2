"""The ``--oidc-*`` flags as a trusted issuer.

``access/oidc_setup.py`` calls it if no configuration file is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from instar.base.field_errors import messages
from instar.base.text_files import read_text
from instar.server.identity.oidc.config import (
    ALGORITHMS,
    ClaimMapping,
    ClaimRule,
    InvalidAuthentication,
    TrustedIssuer,
    issuer_errors,
)
from instar.server.identity.oidc.flags_set import is_given

_BOTH_REQUIRED_TEXT = (
    "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
)


def issuer_of_flags(flags: Mapping[str, Any], own: tuple[str, ...]) -> TrustedIssuer | None:
    """None where no flag is given. Raises ``InvalidAuthentication``."""
    if not is_given(flags):
        return None
    url, client = flags["issuer_url"], flags["client_id"]
    if not url or not client:
        raise InvalidAuthentication(_BOTH_REQUIRED_TEXT)
    issuer = TrustedIssuer(
        url=url,
        audiences=(client,),
        username=ClaimMapping(flags["username_claim"], _username_prefix(flags)),
        groups=_groups(flags),
        claim_rules=tuple(map(_required_claim, flags["required_claim"])),
        authority=_authority(flags["ca_file"]),
        algorithms=_algorithms(flags["signing_algs"]),
    )
    found = list(issuer_errors(issuer, "jwt[0]", own))
    if found:
        raise InvalidAuthentication(messages(found))
    return issuer


def _username_prefix(flags: Mapping[str, Any]) -> str:
    prefix: str = flags["username_prefix"]
    if prefix == "-":
        return ""
    if not prefix and flags["username_claim"] != "email":
        return f"{flags['issuer_url']}#"
    return prefix


def _groups(flags: Mapping[str, Any]) -> ClaimMapping | None:
    claim = flags["groups_claim"]
    return ClaimMapping(claim, flags["groups_prefix"]) if claim else None


def _required_claim(text: str) -> ClaimRule:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidAuthentication(f"--oidc-required-claim {text}: expected NAME=VALUE")
    return ClaimRule(claim=name, required=value)


def _authority(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidAuthentication(f"--oidc-ca-file {path}: {error}") from error


def _algorithms(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(","))
    for each in found:
        if each not in ALGORITHMS:
            raise InvalidAuthentication(f'--oidc-signing-algs: "{each}" is not known')
    return found
