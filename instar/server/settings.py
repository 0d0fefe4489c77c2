"""Settings of a server: everything an operator can set, as one frozen value.

``instar serve`` fills it from flags, ``instar.testing`` from keyword arguments;
``lifecycle/lifetime.py`` starts a server with it. Files it names are read by
``lifecycle/loaded_settings.py``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.limits import HISTORY_BYTES, MAX_STREAMS, READS_AT_ONCE, WRITES_AT_ONCE
from instar.server.access.identities import (
    AccountSettings,
    FrontProxySettings,
    JwtSettings,
    NewUser,
)
from instar.server.http.handler_types import Front
from instar.server.registry.admission.plugin_names import HERE
from instar.server.registry.admission.webhooks.in_process import LocalConfiguration
from instar.server.registry.controllers.controller_names import CONTROLLERS_HERE
from instar.server.registry.kinds.builtin_resources import GroupVersionName
from instar.wire.conversion.in_process import ConvertFunction
from instar.wire.storage.open import StorageOptions
from instar.wire.storage.store import Store
from instar.wire.storage.workers.arena_reclaim import Reclaimer

KUBELET_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
"""As upstream prefers the addresses of a Node."""


@dataclass(frozen=True, kw_only=True)
class EncryptionSettings:
    """Encryption of stored values."""

    config: Path
    """An ``EncryptionConfiguration``."""
    reload: bool = False
    """Whether the file is reloaded when it changes."""


@dataclass(frozen=True, kw_only=True)
class AuditLogSettings:
    """The audit log, with kube-apiserver's defaults; 0 is no limit."""

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
    """Bytes of an event; a larger one is written without its objects."""


@dataclass(frozen=True, kw_only=True)
class AuditWebhookSettings:
    """The audit webhook, with kube-apiserver's defaults."""

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
    """Which requests are recorded, and where."""

    policy: Path
    log: AuditLogSettings | None = None
    webhook: AuditWebhookSettings | None = None


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """Certificate and TLS options of the server's port."""

    cert: Path | None = None
    """A given serving certificate, with ``key``; None: one signed by the server's own CA."""
    key: Path | None = None
    minimum: str = "VersionTLS12"
    ciphers: tuple[str, ...] = ()
    """IANA names; none: OpenSSL's default."""
    http2: bool = True
    """Whether clients may choose HTTP/2 in the handshake."""


@dataclass(frozen=True)
class KubeletSettings:
    """How kubelets are reached, of Nodes that name one."""

    client_cert: Path | None = None
    client_key: Path | None = None
    authority: Path | None = None
    """CA of the kubelets' certificates; None: they are not verified."""
    address_types: tuple[str, ...] = KUBELET_ADDRESS_TYPES
    """Types of a Node's addresses, the preferred first."""


@dataclass(frozen=True, kw_only=True)
class AggregationSettings:
    """How APIServices with a Service are reached."""

    client_cert: Path | None = None
    """Client certificate for backends, with ``client_key``; None: one made at the first start,
    unless a front proxy is configured."""
    client_key: Path | None = None
    by_endpoints: bool = False
    """Whether a ready endpoint of a Service is dialled instead of its cluster IP."""
    refuse_redirects: bool = True


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """A main cluster whose API groups this server serves, behind its aggregation layer."""

    kubeconfig: str
    """A file, or ``in-cluster`` for the account of the pod."""
    groups: tuple[str, ...] = ()
    """Groups whose CRDs are served, besides CRDs with the label ``instar.dev/served=true``."""
    authentication_lookup: bool = True
    """Whether CAs and headers of the aggregation layer are read from the main cluster."""
    tolerates_lookup_failure: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings; the defaults are a server in memory on port 6443 of this machine."""

    host: str = "127.0.0.1"
    port: int = 6443
    """0 picks a free port."""
    advertise_address: str = ""
    """Where other machines reach this server; empty: ``host``, or the default interface."""
    shared_port: Path | None = None
    """The folder with the sockets of processes that serve one port together."""
    worker: bool = False
    """Whether this is one of these processes to which the first passes connections."""
    loans: Reclaimer | None = None
    """Shared memory where this process puts objects for those workers to read."""
    storage: str = "memory:"
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    """Credentials and certificates for etcd or PostgreSQL."""
    fill: Callable[[Store], Awaitable[None]] | None = None
    """Writes objects to the store before the server reads it."""
    values: str = "memory"
    """Where objects are kept: in ``memory``, or on ``disk`` in the store's file."""
    pack_values: str = "auto"
    """Whether objects in memory are packed: ``auto`` packs large collections, ``off`` none."""
    read_only: bool = False
    """Whether writes are refused and controllers are off."""
    encryption: EncryptionSettings | None = None
    audit: AuditSettings | None = None
    tls: TlsSettings = TlsSettings()
    reads_at_once: int = READS_AT_ONCE
    """Reads in flight of all users that are no administrators; 0 is no limit."""
    writes_at_once: int = WRITES_AT_ONCE
    streams_at_once: int = MAX_STREAMS
    """Requests and watches in flight of one HTTP/2 connection."""
    kubeconfig: Path | None = None
    """Written, mode 0600, when the server is ready."""
    cert_dir: Path | None = None
    """Where CA and certificates are kept; None: made anew, in a temporary folder."""
    token_file: Path | None = None
    """Kubernetes CSV: token,user,uid[,"group1,group2"]."""
    client_ca: Path | None = None
    """Another CA for client certificates, besides the server's own."""
    authorization: str = "RBAC"
    """Modes with commas, in the order in which they decide."""
    authorization_webhook: Path | None = None
    """Kubeconfig of the server that the mode Webhook calls."""
    authorization_webhook_seconds: tuple[float, float] = (300.0, 30.0)
    """How long its answers are cached: allowed, denied."""
    anonymous: bool | None = None
    """Whether requests without credentials are ``system:anonymous``; never with AlwaysAllow."""
    accounts: AccountSettings = field(default_factory=AccountSettings)
    """Tokens of ServiceAccounts."""
    bootstrap_tokens: bool = False
    """Whether the bootstrap tokens of Secrets in kube-system are accepted."""
    tokens_of_others: JwtSettings = field(default_factory=JwtSettings)
    front_proxy: FrontProxySettings | None = None
    aggregation: AggregationSettings | None = AggregationSettings()
    """How APIs of other servers are proxied; None: they are not."""
    kubelets: KubeletSettings = KubeletSettings()
    users: tuple[NewUser, ...] = ()
    """Users that get a kubeconfig, besides the administrator."""
    strict_namespaces: bool = True
    controllers: frozenset[str] = CONTROLLERS_HERE
    """Names of the controllers that run, of those that kube-controller-manager has."""
    yields_to_manager: bool = True
    """Whether these stand still while a real kube-controller-manager holds its lease."""
    collect_garbage: bool = True
    """Whether the garbage collector may run; False is the same as a set without its name."""
    versions: frozenset[GroupVersionName] | None = None
    """Built-in group versions that are served; None: those of every server, the stable ones."""
    service_cluster_ip_range: str = "10.0.0.0/24"
    bootstrap_objects: bool = True
    """Whether the bootstrap objects of every cluster are created."""
    watch_list: bool = True
    """Whether watches may ask for initial events (the feature gate WatchList)."""
    cbor: bool = False
    """Whether requests and responses may be CBOR (the feature gate CBORServingAndStorage)."""
    rescue_deletes: bool = False
    history_seconds: float = 300.0
    """How long past revisions stay readable."""
    history_bytes: int = HISTORY_BYTES
    """How many bytes of past revisions stay readable."""
    request_timeout: float = 60.0
    grace_seconds: float = 5.0
    """Time for requests in flight when the server stops."""
    services: tuple[str, ...] = ()
    """``NAMESPACE/NAME[:PORT]=HOST:PORT`` for webhooks behind a service reference."""
    converters: Mapping[str, ConvertFunction] = field(default_factory=dict)
    """By CRD name or ``Kind.group``: functions of this process, called instead of the webhook."""
    admission_plugins: frozenset[str] = HERE
    """Names of the enabled plugins."""
    admission_config: Path | None = None
    """An ``AdmissionConfiguration``, for plugins that need one."""
    admissions: tuple[LocalConfiguration, ...] = ()
    """Admission webhooks that are Python functions in this process."""
    webhook_client_cert: Path | None = None
    webhook_client_key: Path | None = None
    webhook_timeout: float = 30.0
    webhook_timeouts: tuple[str, ...] = ()
    """``CRD_NAME=SECONDS``, instead of ``webhook_timeout``."""
    webhook_calls: int = 32
    """Calls of one webhook at once; ``webhook_queue`` more may wait, others get 429."""
    webhook_queue: int = 512
    conversion_cache: bool = True
    convert_ahead: bool = True
    """Whether written objects are converted ahead of reads, for versions that clients read."""
    review: Callable[[dict[str, Any], dict[str, Any]], list[str]] | None = None
    """Reviews CRD updates: its texts become ``Warning`` headers, or a refusal."""
    deny_breaking: bool = False
    cluster: ClusterSettings | None = None
    """The main cluster that is this server's home; None: its own store is."""
    front: Front | None = None
    """The console, which answers some requests before the API."""
    extra_names: tuple[str, ...] = field(default=())
    """More host names or addresses for the server certificate."""
