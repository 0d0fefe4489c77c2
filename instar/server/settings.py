"""Everything an operator can set about a server, as one frozen value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.limits import HISTORY_BYTES, READS_AT_ONCE, WRITES_AT_ONCE
from instar.server.access.identities import (
    AccountSettings,
    FrontProxySettings,
    JwtSettings,
    NewUser,
)
from instar.server.http.handler_types import Front
from instar.server.registry.admission.plugin_names import HERE
from instar.server.registry.admission.webhooks.in_process import LocalConfiguration
from instar.wire.conversion.in_process import ConvertFunction
from instar.wire.storage.open import StorageOptions
from instar.wire.storage.store import Store
from instar.wire.storage.workers.arena_reclaim import Loans


@dataclass(frozen=True, kw_only=True)
class EncryptionSettings:
    """How values lie in the store."""

    config: Path
    """An ``EncryptionConfiguration``."""
    reload: bool = False
    """Whether the file is looked at again and again."""


@dataclass(frozen=True, kw_only=True)
class AuditLogSettings:
    """Upstream's defaults; 0 is no limit."""

    path: str
    """``-`` is standard output."""
    format: str = "json"
    mode: str = "blocking"
    megabytes: int = 100
    days: int = 366
    backups: int = 100
    compress: bool = False
    room: int = 10_000
    longest: int = 0
    """Bytes of an event, beyond which its objects are left out."""


@dataclass(frozen=True, kw_only=True)
class AuditWebhookSettings:
    config: Path
    """A kubeconfig."""
    room: int = 10_000
    most: int = 400
    wait: float = 30.0
    throttled: bool = True
    per_second: float = 10.0
    burst: int = 15
    backoff: float = 10.0
    longest: int = 0


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """Who did what: recorded where a policy says so."""

    policy: Path
    log: AuditLogSettings | None = None
    webhook: AuditWebhookSettings | None = None


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    cert: Path | None = None
    """A serving certificate that is not of our own making, with ``key``."""
    key: Path | None = None
    minimum: str = "VersionTLS12"
    ciphers: tuple[str, ...] = ()
    """IANA's names; none: OpenSSL's own choice."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 6443
    """0 picks a free one."""
    shared_port: Path | None = None
    """The folder where processes of ours meet that serve one port together."""
    worker: bool = False
    """Whether another of them takes the connections, and hands them on to who is ready."""
    loans: Loans | None = None
    """Shared memory that those others read objects from, which this process puts there."""
    storage: str = "memory:"
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    """Credentials and certificates for an etcd cluster."""
    fill: Callable[[Store], Awaitable[None]] | None = None
    """Puts something into the store before the server starts on it."""
    values: str = "memory"
    """Where the bytes of objects are kept: there, or on ``disk``, in the store's file."""
    read_only: bool = False
    """Whether every write is refused, and no controller does one either."""
    encryption: EncryptionSettings | None = None
    audit: AuditSettings | None = None
    tls: TlsSettings = TlsSettings()
    reads_at_once: int = READS_AT_ONCE
    """Unfinished requests that read, of all who are no administrators; 0 is any number."""
    writes_at_once: int = WRITES_AT_ONCE
    kubeconfig: Path | None = None
    """Written, mode 0600, when the server is ready."""
    cert_dir: Path | None = None
    """Where CA and certificates are kept; None: made anew, kept in memory and a private folder."""
    token_file: Path | None = None
    """Kubernetes CSV: token,user,uid[,"group1,group2"]."""
    client_ca: Path | None = None
    """Who else may sign client certificates, besides our own CA."""
    authorization: str = "RBAC"
    """Modes in the order in which they are asked, with commas."""
    authorization_webhook: Path | None = None
    """Kubeconfig of the server that the mode Webhook asks."""
    authorization_webhook_seconds: tuple[float, float] = (300.0, 30.0)
    """How long its yes and its no are believed."""
    anonymous: bool | None = None
    """Whether who shows no credential is ``system:anonymous``; never where all is allowed."""
    accounts: AccountSettings = field(default_factory=AccountSettings)
    """Tokens of ServiceAccounts."""
    tokens_of_others: JwtSettings = field(default_factory=JwtSettings)
    front_proxy: FrontProxySettings | None = None
    users: tuple[NewUser, ...] = ()
    """Who gets a kubeconfig besides the admin."""
    strict_namespaces: bool = True
    collect_garbage: bool = True
    service_cluster_ip_range: str = "10.0.0.0/24"
    furniture: bool = True
    """Whether there is from the start what every cluster has."""
    rescue_deletes: bool = False
    history_seconds: float = 300.0
    history_bytes: int = HISTORY_BYTES
    """How long past revisions stay readable."""
    request_timeout: float = 60.0
    grace_seconds: float = 5.0
    """For requests that are being answered when the server stops."""
    services: tuple[str, ...] = ()
    """``NAMESPACE/NAME[:PORT]=HOST:PORT`` for webhooks behind a service reference."""
    converters: Mapping[str, ConvertFunction] = field(default_factory=dict)
    """By CRD name: functions run in this process instead of calling the CRD's webhook."""
    admission_plugins: frozenset[str] = HERE
    admission_config: Path | None = None
    """An ``AdmissionConfiguration``, for plugins that need one."""
    """Names of those that are on."""
    admissions: tuple[LocalConfiguration, ...] = ()
    """Admission webhooks that are functions of this process."""
    webhook_client_cert: Path | None = None
    webhook_client_key: Path | None = None
    webhook_timeout: float = 30.0
    webhook_timeouts: tuple[str, ...] = ()
    """``CRD_NAME=SECONDS``, before ``webhook_timeout``."""
    webhook_calls: int = 32
    """Calls of one webhook at once; as many as ``webhook_queue`` more may wait, others get 429."""
    webhook_queue: int = 512
    conversion_cache: bool = True
    convert_ahead: bool = True
    """Whether what was written is converted, for versions somebody reads, before it is read."""
    review: Callable[[dict[str, Any], dict[str, Any]], list[str]] | None = None
    """Judges CRD updates: its texts become ``Warning`` headers, or a refusal."""
    deny_breaking: bool = False
    front: Front | None = None
    """What stands before the API: the console."""
    extra_names: tuple[str, ...] = field(default=())
    """More host names or addresses for the server certificate."""
