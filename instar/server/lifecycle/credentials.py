"""Credentials of a server: certificates, the admin's token, kubeconfigs of further users.

``lifetime.py`` loads them before it opens the store, from the certificate folder or a temporary
one, and writes the kubeconfigs once the address is known. Certificates are made in
``server/files``.
"""

from __future__ import annotations

import contextlib
import fcntl
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from instar.base.fast_dataclass import dataclass
from instar.base.text_files import read_text
from instar.server.access.authorization import ALWAYS_ALLOW, modes_of
from instar.server.access.identities import (
    Identities,
    NewUser,
    account_keys,
    anonymous_of,
    front_proxy_of,
    static_tokens,
    trusted_issuers,
)
from instar.server.files.certificates import (
    Certificates,
    ProxyCertificate,
    ensure_certificates,
    ensure_proxy_certificate,
    user_certificate,
    write_private,
)
from instar.server.files.kubeconfig import write_kubeconfig, write_user_kubeconfig
from instar.server.http.tls import ReloadingContext
from instar.server.lifecycle.aggregation_setup import makes_proxy_certificate
from instar.server.lifecycle.optional_parts import foreign_certificate, tls_of
from instar.server.settings import Settings
from instar.wire.webhooks.https import ClientCertificate


@dataclass(frozen=True, kw_only=True)
class ServerCredentials:
    """Certificates and tokens of the server, its users and its authenticators."""

    ca: Path
    """The certificate of the server's own CA."""
    certificates: Certificates
    tls: ReloadingContext
    """TLS of the port."""
    token: str
    """The admin's."""
    identities: Identities
    users: Mapping[NewUser, tuple[bytes, bytes]]
    """Users that get a kubeconfig, each with a client certificate and its key."""
    authorities: bytes
    """What clients trust: our own CA and the certificate an operator gave."""
    proxy: ProxyCertificate | None = None
    """The certificate made for calls of backends; None where one is given, or none is used."""

    def proxy_pair(self) -> ClientCertificate | None:
        """Files of the certificate made for calls of backends."""
        made = self.proxy
        return None if made is None else ClientCertificate(str(made.cert), str(made.key))

    def write_kubeconfigs(self, admin: Path, url: str) -> None:
        write_kubeconfig(admin, url, self.authorities, self.token)
        for user, pair in self.users.items():
            write_user_kubeconfig(user.kubeconfig, url, self.authorities, user.name, pair)


def load_credentials(settings: Settings, folder: Path) -> ServerCredentials:
    """Read them from the folder, and make what is missing there. Raises ``ValueError``."""
    with _lock_folder(folder):
        certificates = ensure_certificates(folder, _names(settings))
        tls, token = tls_of(settings, certificates), _admin_token(folder)
        return ServerCredentials(
            ca=certificates.ca,
            certificates=certificates,
            tls=tls,
            token=token,
            identities=_identities(settings, folder, token),
            users={
                each: user_certificate(folder, each.name, each.groups) for each in settings.users
            },
            authorities=certificates.ca.read_bytes() + foreign_certificate(settings),
            proxy=ensure_proxy_certificate(folder) if makes_proxy_certificate(settings) else None,
        )


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Replicas on one machine may start together on one folder: the first makes the files, the
    others wait for the lock and find them."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _identities(settings: Settings, pki: Path, token: str) -> Identities:
    all_allowed = ALWAYS_ALLOW in modes_of(settings.authorization)
    trusted = trusted_issuers(settings.tokens_of_others, settings.accounts)
    return Identities(
        static=static_tokens(token, settings.token_file),
        accounts=settings.accounts,
        keys=account_keys(settings.accounts, pki),
        anonymous=anonymous_of(settings.anonymous, trusted, all_allowed=all_allowed),
        front_proxy=front_proxy_of(settings.front_proxy),
        trusted=trusted,
        bootstrap=settings.bootstrap_tokens,
    )


def _names(settings: Settings) -> list[str]:
    """Host names and addresses in the serving certificate."""
    names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"]
    if settings.host not in ("0.0.0.0", "::", *names):
        names.append(settings.host)
    return [*names, *settings.extra_names]


def _admin_token(folder: Path) -> str:
    """Kept beside the certificates, so that a restart does not invalidate kubeconfigs."""
    path = folder / "admin.token"
    if path.exists():
        return read_text(path).strip()
    token = secrets.token_urlsafe(32)
    write_private(path, token.encode() + b"\n")
    return token
