"""Reads a kubeconfig, or a pod's mounted service account, into an ``Access``.

Used by ``client.py`` and ``cli/shared/cluster_flags.py`` to reach a cluster, and by the server for
the kubeconfig files of webhook authorizer and audit webhook. The module interprets the entries that
``kubeconfig_files.py`` finds, and opens no connection.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from instar.base.fast_dataclass import dataclass
from instar.base.text_files import read_text
from instar.wire.client.exec_credentials import Credential, ExecError, ExecPlugin, read_exec
from instar.wire.client.kubeconfig_files import KubeconfigEntry, choose, read
from instar.wire.client.kubeconfig_files import KubeconfigError as KubeconfigError

_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One server and one identity. PEM fields hold bytes, never file names."""

    server: str
    ca: bytes | None = None
    insecure: bool = False
    server_name: str | None = None
    client_cert: bytes | None = None
    client_key: bytes | None = None
    token: str | None = None
    token_file: Path | None = None
    """Read again on every use, because a mounted token is rotated."""
    basic: tuple[str, str] | None = None
    plugin: ExecPlugin | None = None
    """Exec credential plugin; ``bearer`` and ``ssl_context`` wait for it."""
    acts_as: tuple[tuple[str, str], ...] = ()
    """Impersonation headers."""
    proxy: str | None = None
    namespace: str = "default"
    origin: str = ""
    """User and file of this access, for messages."""
    context: str = ""
    """Name of the context in the kubeconfig; empty without one."""
    qps: float = 0
    """Requests a second that each client with this access may send; 0 is no limit."""

    def __str__(self) -> str:
        return f"{self.server}, {self.origin}" if self.origin else self.server

    def headers(self) -> list[tuple[str, str]]:
        """Return the authentication headers."""
        token = self.bearer()
        if token:
            return [("Authorization", f"Bearer {token}"), *self.acts_as]
        if self.basic:
            pair = base64.b64encode(":".join(self.basic).encode()).decode()
            return [("Authorization", f"Basic {pair}"), *self.acts_as]
        return list(self.acts_as)

    def credential(self) -> Credential | None:
        """Return the credential of the exec plugin, if there is one."""
        if self.plugin is None:
            return None
        try:
            return self.plugin.credential()
        except ExecError as error:
            raise KubeconfigError(f"{self.origin}: {error}") from None

    def bearer(self) -> str | None:
        found = self.credential()
        if found is not None:
            return found.token
        if self.token_file is not None:
            try:
                return read_text(self.token_file).strip()
            except OSError as error:
                raise KubeconfigError(f"{self.token_file}: {error.strerror}") from None
        return self.token

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS context; ``None`` for a plain ``http://`` server."""
        if not self.server.startswith("https://"):
            return None
        try:
            return self._ssl_context()
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(f"certificates for {self.server}: {error}") from None

    def _ssl_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.ca.decode() if self.ca else None)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        found = self.credential()
        pair = (self.client_cert, self.client_key) if found is None else (found.cert, found.key)
        if pair[0] and pair[1]:
            # The ssl module reads key pairs from files only.
            with tempfile.TemporaryDirectory() as folder:
                cert, key = Path(folder, "cert.pem"), Path(folder, "key.pem")
                cert.write_bytes(pair[0])
                key.touch(mode=0o600)
                key.write_bytes(pair[1])
                context.load_cert_chain(cert, key)
        return context


def load_access(
    path: str | Path | None = None, context: str | None = None, *, qps: float = 0
) -> Access:
    """Load ``path``, else ``$KUBECONFIG``, else ``~/.kube/config``, else the pod's own account."""
    files = _candidates(path)
    found = [file for file in files if file.is_file()]
    if found:
        return replace(read_kubeconfig(found, context), qps=qps)
    if path is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return replace(in_cluster(), qps=qps)
    listed = ", ".join(str(file) for file in files)
    raise KubeconfigError(f"no kubeconfig at {listed}, and not running inside a cluster")


def _candidates(path: str | Path | None) -> list[Path]:
    if path is not None:
        return [Path(path).expanduser()]
    listed = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [Path.home() / ".kube" / "config"]


def in_cluster(account: Path = _ACCOUNT_FOLDER) -> Access:
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (account / "token").is_file():
        raise KubeconfigError("not inside a cluster: no service account is mounted")
    namespace = account / "namespace"
    return Access(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca=read(account / "ca.crt"),
        token_file=account / "token",
        origin="the account of this pod",
        namespace=read_text(namespace).strip() if namespace.is_file() else "default",
    )


def read_kubeconfig(files: list[Path], context: str | None = None) -> Access:
    """Read files merged as kubectl merges them: the first to name an entry wins."""
    chosen = choose(files, context)
    user = chosen.user or KubeconfigEntry("user", "", {}, chosen.context.file)
    origin = f"user {user.name!r} of {user.file}" if chosen.user else f"no user, {user.file}"
    access = _access(chosen.cluster, user, origin)
    namespace = str(chosen.context.body.get("namespace") or "default")
    return replace(access, namespace=namespace, context=chosen.context.name)


def _access(cluster: KubeconfigEntry, user: KubeconfigEntry, origin: str) -> Access:
    server = str(cluster.body.get("server") or "").rstrip("/")
    if not server.startswith(("http://", "https://")):
        raise KubeconfigError(f"{cluster}: server {server!r} is neither http nor https")
    _reject_auth_provider(user)
    _reject_incomplete(user)
    name, password = user.body.get("username") or "", user.body.get("password") or ""
    token_file = user.body.get("tokenFile")
    insecure, authority = (
        bool(cluster.body.get("insecure-skip-tls-verify")),
        cluster.pem("certificate-authority"),
    )
    if insecure and authority:
        raise KubeconfigError(
            f"{cluster}: insecure-skip-tls-verify and certificate-authority exclude each other"
        )
    return Access(
        server=server,
        ca=authority,
        insecure=insecure,
        server_name=cluster.body.get("tls-server-name") or None,
        client_cert=user.pem("client-certificate"),
        client_key=user.pem("client-key"),
        token=user.body.get("token") or None,
        token_file=user.file.parent / token_file if token_file else None,
        basic=(name, password) if name or password else None,
        plugin=_plugin(user, cluster),
        acts_as=_impersonation_headers(user),
        proxy=_proxy(cluster),
        origin=origin,
    )


def _reject_incomplete(user: KubeconfigEntry) -> None:
    """Reject incomplete or ambiguous credentials, as kubectl does."""
    for one, other in (("client-certificate", "client-key"), ("client-key", "client-certificate")):
        if user.has_pem(one) and not user.has_pem(other):
            raise KubeconfigError(f"{user}: {one} without {other}")
    ways = [
        name
        for name, there in (
            ("a token", user.body.get("token") or user.body.get("tokenFile")),
            ("a password", user.body.get("username") or user.body.get("password")),
            ("exec", user.body.get("exec")),
        )
        if there
    ]
    if len(ways) > 1:
        raise KubeconfigError(f"{user}: {' and '.join(ways)}: only one of them can be shown")


def _plugin(user: KubeconfigEntry, cluster: KubeconfigEntry) -> ExecPlugin | None:
    body = user.body.get("exec")
    if not body:
        return None
    try:
        return read_exec(body, user.file.parent, cluster.body)
    except ExecError as error:
        raise KubeconfigError(f"{user}: {error}") from None


def _impersonation_headers(user: KubeconfigEntry) -> tuple[tuple[str, str], ...]:
    name = user.body.get("as")
    pairs = [("Impersonate-Group", str(each)) for each in user.body.get("as-groups") or ()]
    if user.body.get("as-uid"):
        pairs.append(("Impersonate-Uid", str(user.body["as-uid"])))
    for key, values in (user.body.get("as-user-extra") or {}).items():
        pairs += [(f"Impersonate-Extra-{quote(str(key), safe='')}", str(each)) for each in values]
    if not name:
        if pairs:
            raise KubeconfigError(f"{user}: as-groups, as-uid or as-user-extra without as")
        return ()
    return (("Impersonate-User", str(name)), *pairs)


def _proxy(cluster: KubeconfigEntry) -> str | None:
    url = cluster.body.get("proxy-url")
    if not url:
        return None
    if not str(url).startswith(("http://", "https://")):
        raise KubeconfigError(
            f"{cluster}: proxy-url {url!r}: only http and https proxies can be used"
        )
    return str(url)


def _reject_auth_provider(user: KubeconfigEntry) -> None:
    provider = user.body.get("auth-provider")
    if provider:
        raise KubeconfigError(
            f"{user}: auth-provider {provider.get('name')!r} went with Kubernetes 1.26; use "
            "exec, a token or a client certificate"
        )
