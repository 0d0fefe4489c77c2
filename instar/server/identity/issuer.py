"""Issuer of ServiceAccount tokens: signs and verifies them, publishes the public keys.

``access/account_tokens.py`` requests tokens, ``tokens.py`` verifies tokens. Keys are read when the
first token needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from instar.base.fast_dataclass import dataclass
from instar.server.identity import jwt
from instar.server.identity.service_accounts import (
    Lookup,
    TokenRequestSpec,
    account_of,
    check_audiences,
    check_times,
    claims_of,
)
from instar.server.identity.tokens import Audiences, Identified, TokenRejected

if TYPE_CHECKING:
    from instar.server.identity.keys import SigningKey, VerifyingKey

T = TypeVar("T")


@dataclass(frozen=True)
class KeyFiles:
    """Files of keys: one signs, all verify."""

    signing: Path
    verifying: Sequence[Path] = ()

    @cached_property
    def signer(self) -> SigningKey:
        # Imported here: without ServiceAccount tokens cryptography is not needed.
        from instar.server.identity.keys import signing_key

        return _load_key(self.signing, signing_key)

    @cached_property
    def verifiers(self) -> list[VerifyingKey]:
        # Imported here: see above.
        from instar.server.identity.keys import verifying_keys

        found = [self.signer.public]
        for path in self.verifying:
            found += (key for key in _load_key(path, verifying_keys) if key not in found)
        return found


def check_signature(keys: KeyFiles, shown: jwt.Jwt) -> None:
    """Raise ``TokenRejected`` unless one of the keys has signed the token."""
    found = keys.verifiers
    if shown.key_id:
        found = [key for key in found if key.id == shown.key_id]
    if not found:
        raise TokenRejected("invalid signature, no keys found")
    if not any(key.verifies(shown) for key in found):
        raise TokenRejected("invalid signature")


def _load_key(path: Path, load: Callable[[bytes], T]) -> T:
    try:
        return load(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"service account key {path}: {error}") from error


@dataclass(frozen=True)
class Issuer:
    """The first of ``names`` is in new tokens, all are accepted."""

    names: tuple[str, ...]
    audiences: Audiences
    keys: KeyFiles
    lookup: Lookup
    now: Callable[[], float]
    new_id: Callable[[], str]
    longest_seconds: int = 0
    """Longest lifetime of a token; 0: no limit."""
    extends: bool = True
    """Whether tokens for pods are valid for a year, for clients that do not reload them."""
    jwks_uri: str = ""
    _names: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_names", frozenset(self.names))

    def issue(self, wish: TokenRequestSpec) -> str:
        claims = claims_of(wish, self.names[0], int(self.now()), self.new_id())
        return self.keys.signer.token(claims)

    async def identify(self, token: str, audiences: Audiences) -> Identified | None:
        shown = jwt.read(token)
        if shown is None or shown.issuer not in self._names:
            return None
        check_signature(self.keys, shown)
        now = self.now()
        check_times(shown.claims, now)
        common = check_audiences(shown.claims, audiences)
        return Identified(account_of(shown.claims, self.lookup, now), common)

    def discovery(self, default_uri: str) -> dict[str, Any]:
        """The OpenID configuration of this issuer."""
        return {
            "issuer": self.names[0],
            "jwks_uri": self.jwks_uri or default_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted(
                {key.algorithm for key in self.keys.verifiers}
            ),
        }

    def jwks(self) -> dict[str, Any]:
        return {"keys": [key.jwk() for key in self.keys.verifiers]}
