"""Identities that a server accepts, by its settings: tokens, keys, issuers, front proxy.

``lifecycle/credentials.py`` calls it at the start, so that a file that cannot be read is reported
before requests are served. Authentication itself is in ``authentication.py``.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.access.attributes import ADMIN_GROUP, AUTHENTICATED, User
from instar.server.access.authentication import Anonymous, Authenticator, read_token_file
from instar.server.access.front_proxy import FrontProxy
from instar.server.files.certificates import write_private
from instar.server.identity.bootstrap_tokens import BootstrapTokens
from instar.server.identity.issuer import Issuer, KeyFiles
from instar.server.identity.legacy_tokens import LegacyTokenMetrics, LegacyTokens, NoteUse
from instar.server.identity.service_accounts import Lookup
from instar.server.identity.tokens import StaticTokens, TokenAuthenticator, Tokens
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import UnreadableEntry
from instar.wire.storage.keys import collection_prefix

if TYPE_CHECKING:
    from instar.server.identity.oidc.trusted_issuers import TrustedIssuers

DEFAULT_ISSUER = "https://kubernetes.default.svc"
_SIGNING_KEY = "sa.key"


@dataclass(frozen=True, kw_only=True)
class AccountSettings:
    """Tokens of ServiceAccounts."""

    issuers: tuple[str, ...] = (DEFAULT_ISSUER,)
    audiences: tuple[str, ...] = ()
    """Audiences of the API itself; none: the issuers."""
    signing_key: Path | None = None
    """None: a key made at the first start."""
    keys: tuple[Path, ...] = ()
    """Further keys that verify tokens."""
    longest_seconds: int = 0
    extends: bool = True
    jwks_uri: str = ""


@dataclass(frozen=True, kw_only=True)
class JwtSettings:
    """Tokens of other issuers."""

    config: Path | None = None
    """An ``AuthenticationConfiguration``."""
    oidc: Mapping[str, Any] = field(default_factory=dict)
    """The ``--oidc-…`` flags, by their names without the prefix."""


@dataclass(frozen=True, kw_only=True)
class FrontProxySettings:
    """How requests of a front proxy are recognized: its CA, names and headers."""

    ca: Path
    names: tuple[str, ...] = ()
    user_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()


class NewUser(NamedTuple):
    """A user that gets a kubeconfig when the server is ready."""

    name: str
    groups: tuple[str, ...]
    kubeconfig: Path


@dataclass(frozen=True, kw_only=True)
class Identities:
    """Everything that authenticates requests."""

    static: Mapping[str, User]
    accounts: AccountSettings
    keys: KeyFiles
    anonymous: Anonymous
    front_proxy: FrontProxy | None = None
    trusted: TrustedIssuers | None = None
    """Other issuers of tokens."""
    bootstrap: bool = False
    """Whether bootstrap tokens are accepted."""

    def secret(self) -> bytes:
        """The signing key's bytes, the same in all replicas; other keys are derived from it."""
        return self.keys.signing.read_bytes()

    def issuer(self, backend: Backend) -> Issuer:
        accounts = self.accounts
        return Issuer(
            names=accounts.issuers,
            audiences=accounts.audiences or accounts.issuers,
            keys=self.keys,
            lookup=_lookup_in(backend),
            now=time.time,
            new_id=lambda: str(uuid.uuid4()),
            longest_seconds=accounts.longest_seconds,
            extends=accounts.extends,
            jwks_uri=accounts.jwks_uri,
        )

    def authenticator(
        self,
        issuer: Issuer,
        home: TokenAuthenticator | None,
        note_use: NoteUse,
        metrics: LegacyTokenMetrics,
    ) -> Authenticator:
        """``home`` knows the tokens of ServiceAccounts and of Secrets; None: this server does.
        ``note_use`` marks the Secrets whose tokens are used."""
        several: list[TokenAuthenticator] = [StaticTokens(self.static, issuer.audiences)]
        if home is None:
            audiences, lookup = issuer.audiences, issuer.lookup
            several.append(LegacyTokens(self.keys, audiences, lookup, note_use, metrics))
        several.append(issuer if home is None else home)
        if home is None and self.bootstrap:
            several.append(BootstrapTokens(issuer.lookup, issuer.audiences, issuer.now))
        if self.trusted is not None:
            several.append(self.trusted)
        tokens = Tokens(several, issuer.audiences)
        if self.trusted is not None:
            self.trusted.changed = tokens.forget
        return Authenticator(
            tokens, self.static, anonymous=self.anonymous, front_proxy=self.front_proxy
        )


def static_tokens(admin: str, file: Path | None) -> dict[str, User]:
    """Return users by token: the administrator and those of ``--token-auth-file``."""
    tokens = {admin: User("kubernetes-admin", (ADMIN_GROUP, AUTHENTICATED))}
    return tokens if file is None else tokens | read_token_file(file)


def account_keys(settings: AccountSettings, pki: Path) -> KeyFiles:
    """Read the given keys, or make a key where there is none.

    To rotate it, rename ``sa.key`` to ``sa.key.1`` and start again: the old one still verifies.
    """
    if not settings.issuers or not all(settings.issuers):
        raise ValueError("service-account-issuer is a required flag")
    if settings.signing_key is not None:
        given = KeyFiles(settings.signing_key, settings.keys)
        assert given.verifiers, "there is at least the one that signs"
        return given
    own = pki / _SIGNING_KEY
    if not own.exists():
        # Imported here: a restart finds its key and does not need cryptography.
        from instar.base.certificates import new_private_key

        write_private(own, new_private_key())
    former = sorted(pki.glob(f"{_SIGNING_KEY}.*"))
    keys = KeyFiles(own, (*former, *settings.keys))
    if settings.keys:
        assert keys.verifiers, "there is at least the one that signs"
    return keys


def trusted_issuers(settings: JwtSettings, accounts: AccountSettings) -> TrustedIssuers | None:
    """Raises ``ValueError`` for a wrong configuration."""
    if settings.config is None and not settings.oidc:
        return None
    # Imported here: most servers trust no other issuer.
    from instar.server.access.oidc_setup import load_trusted

    return load_trusted(
        settings.config, settings.oidc, accounts.issuers, accounts.audiences or accounts.issuers
    )


def anonymous_of(
    flag: bool | None, trusted: TrustedIssuers | None, *, all_allowed: bool
) -> Anonymous:
    rules = None if trusted is None else trusted.anonymous
    if rules is None:
        return Anonymous(flag is not False and not all_allowed)
    if flag is not None:
        raise ValueError(
            "--anonymous-auth flag cannot be set when anonymous field is configured in "
            "authentication configuration file"
        )
    paths = frozenset(rules.paths) if rules.paths else None
    return Anonymous(rules.enabled and not all_allowed, paths)


def front_proxy_of(settings: FrontProxySettings | None) -> FrontProxy | None:
    if settings is None:
        return None
    if not settings.user_headers:
        raise ValueError("a front proxy needs --requestheader-username-headers")

    def lower(names: tuple[str, ...]) -> tuple[bytes, ...]:
        return tuple(name.lower().encode() for name in names)

    return FrontProxy(
        lower(settings.user_headers),
        lower(settings.uid_headers),
        lower(settings.group_headers),
        lower(settings.extra_prefixes),
    )


def _lookup_in(backend: Backend) -> Lookup:
    def lookup(plural: str, namespace: str, name: str) -> Object | None:
        objects = backend.collection(collection_prefix("", plural))
        entry = objects.entries.get(f"{namespace}/{name}" if namespace else name)
        try:
            return None if entry is None else entry.decode()
        except UnreadableEntry:
            return None

    return lookup
