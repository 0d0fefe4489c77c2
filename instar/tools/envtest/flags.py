"""Parser and tables of kube-apiserver's and etcd's flags. Pure.

``cli/serving/kube_apiserver.py`` and ``etcd_stub.py`` parse their command lines with it;
``flag_translation.py`` translates the flags to those of ``instar serve``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Flags = dict[str, list[str]]
"""Each flag with all its values, in order."""


EXIT_WITH_PARENT = "exit-with-parent"
"""A flag that upstream does not have: ``instar envtest`` starts its programs with it."""


class UnknownFlag(Exception):
    """An unknown flag; ``str()`` is the message that kube-apiserver or etcd prints."""


def parse_flags(
    words: Sequence[str], known: Mapping[str, bool], *, shorthands: bool = True
) -> Flags:
    """Parse a command line. ``known`` maps a name to whether it is a boolean, which takes no
    separate value.

    Accepts ``--name=value`` and ``--name value``, ``_`` for ``-``, ``-v 2``. Other words are
    ignored. Without ``shorthands`` one dash means the same as two, as etcd reads it.
    """
    found: Flags = {}
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word == "--":
            break
        if not word.startswith("-"):
            continue
        dashes = "--" if word.startswith("--") else "-"
        name, equals, value = word.removeprefix(dashes).partition("=")
        name = name.replace("_", "-")
        if shorthands and dashes == "-" and len(name) > 1:  # -v2
            name, value, equals = name[0], name[1:] + equals + value, "="
        if name not in known:
            raise UnknownFlag(f"unknown flag: --{name}")
        if not equals:
            takes_word = not known[name] and waiting
            value = waiting.pop() if takes_word else "true" if known[name] else ""
        found.setdefault(name, []).append(value)
    return found


def _words(text: str) -> list[str]:
    return text.split()


_BOOLEANS = _words("""
    aggregator-reject-forwarding-redirect allow-privileged anonymous-auth audit-log-compress
    audit-log-truncate-enabled audit-webhook-batch-throttle-enable audit-webhook-truncate-enabled
    audit-log-batch-throttle-enable contention-profiling disable-http2-serving
    emulation-forward-compatible enable-aggregator-routing enable-bootstrap-token-auth
    enable-garbage-collector enable-logs-handler enable-priority-and-fairness
    encryption-provider-config-automatic-reload help kubelet-https log-json-split-stream
    log-text-split-stream permit-address-sharing permit-port-sharing profiling
    runtime-config-emulation-forward-compatible service-account-extend-token-expiration
    service-account-lookup shutdown-send-retry-after version watch-cache
""")
_OTHERS = _words("""
    admission-control admission-control-config-file advertise-address allow-metric-labels
    allow-metric-labels-manifest api-audiences audit-log-batch-buffer-size
    audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
    audit-log-batch-throttle-qps audit-log-format audit-log-maxage audit-log-maxbackup
    audit-log-maxsize audit-log-mode audit-log-path audit-log-truncate-max-batch-size
    audit-log-truncate-max-event-size audit-log-version audit-policy-file
    audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait
    audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-qps
    audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode
    audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size
    audit-webhook-version authentication-config authentication-token-webhook-cache-ttl
    authentication-token-webhook-config-file authentication-token-webhook-version
    authorization-config authorization-mode authorization-policy-file
    authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
    authorization-webhook-config-file authorization-webhook-version bind-address cert-dir
    client-ca-file cloud-provider coordinated-leadership-lease-duration
    coordinated-leadership-renew-deadline coordinated-leadership-retry-period
    cors-allowed-origins debug-socket-path default-not-ready-toleration-seconds
    default-unreachable-toleration-seconds default-watch-cache-size delete-collection-workers
    disable-admission-plugins disabled-metrics egress-selector-config-file emulated-version
    enable-admission-plugins encryption-provider-config endpoint-reconciler-type etcd-cafile
    etcd-certfile etcd-compaction-interval etcd-count-metric-poll-period
    etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix
    etcd-readycheck-timeout etcd-servers etcd-servers-overrides event-ttl external-hostname
    feature-gates goaway-chance http2-max-streams-per-connection insecure-bind-address
    insecure-port kubelet-certificate-authority kubelet-client-certificate kubelet-client-key
    kubelet-port kubelet-preferred-address-types kubelet-read-only-port kubelet-timeout
    kubernetes-service-node-port lease-reuse-duration-seconds livez-grace-period
    log-flush-frequency log-json-info-buffer-size log-text-info-buffer-size logging-format
    max-connection-bytes-per-sec max-mutating-requests-inflight max-requests-inflight
    min-compatibility-version min-request-timeout oidc-ca-file oidc-client-id
    oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim
    oidc-signing-algs oidc-username-claim oidc-username-prefix peer-advertise-ip
    peer-advertise-port peer-ca-file proxy-client-cert-file proxy-client-key-file
    request-timeout requestheader-allowed-names requestheader-client-ca-file
    requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
    requestheader-username-headers runtime-config secure-port service-account-issuer
    service-account-jwks-uri service-account-key-file service-account-max-token-expiration
    service-account-signing-endpoint service-account-signing-key-file
    service-cluster-ip-range service-node-port-range show-hidden-metrics-for-version
    shutdown-delay-duration shutdown-watch-termination-grace-period storage-backend
    storage-initialization-timeout storage-media-type strict-transport-security-directives
    tls-cert-file tls-cipher-suites tls-curve-preferences tls-min-version
    tls-private-key-file tls-sni-cert-key token-auth-file tracing-config-file v vmodule
    watch-cache-sizes
""")
APISERVER: Mapping[str, bool] = {
    **dict.fromkeys(_BOOLEANS, True),
    **dict.fromkeys(_OTHERS, False),
    "h": True,
    "controllers": False,
    "history-size": False,
    EXIT_WITH_PARENT: True,
}
"""Every flag of kube-apiserver, and the older ones that suites still give; ``controllers`` is
kube-controller-manager's, the last two are ours."""

_ETCD_BOOLEANS = _words("""
    auto-tls client-cert-auth discovery-insecure-skip-tls-verify discovery-insecure-transport
    enable-distributed-tracing enable-grpc-gateway enable-log-rotation enable-pprof
    experimental-compact-hash-check-enabled experimental-enable-distributed-tracing
    experimental-enable-lease-checkpoint experimental-enable-lease-checkpoint-persist
    experimental-initial-corrupt-check experimental-memory-mlock
    experimental-peer-skip-client-san-verification experimental-stop-grpc-service-on-defrag
    experimental-txn-mode-write-with-shared-buffer force-new-cluster h help
    initial-election-tick-advance memory-mlock peer-auto-tls peer-client-cert-auth
    peer-skip-client-san-verification pre-vote socket-reuse-address socket-reuse-port
    strict-reconfig-check unsafe-no-fsync version
""")
_ETCD_OTHERS = _words("""
    advertise-client-urls auth-token auth-token-ttl auto-compaction-mode
    auto-compaction-retention backend-batch-interval backend-batch-limit
    backend-bbolt-freelist-type bcrypt-cost bootstrap-defrag-threshold-megabytes cert-file
    cipher-suites client-cert-allowed-hostname client-cert-file client-crl-file client-key-file
    compact-hash-check-time compaction-batch-limit compaction-sleep-interval config-file
    corrupt-check-time cors data-dir discovery discovery-cacert discovery-cert
    discovery-dial-timeout discovery-endpoints discovery-fallback discovery-keepalive-time
    discovery-keepalive-timeout discovery-key discovery-password discovery-proxy
    discovery-request-timeout discovery-srv discovery-srv-name discovery-token discovery-user
    distributed-tracing-address distributed-tracing-instance-id
    distributed-tracing-sampling-rate distributed-tracing-service-name downgrade-check-time
    election-timeout experimental-bootstrap-defrag-threshold-megabytes
    experimental-compact-hash-check-time experimental-compaction-batch-limit
    experimental-compaction-sleep-interval experimental-corrupt-check-time
    experimental-distributed-tracing-address experimental-distributed-tracing-instance-id
    experimental-distributed-tracing-sampling-rate experimental-distributed-tracing-service-name
    experimental-downgrade-check-time experimental-snapshot-catchup-entries
    experimental-warning-apply-duration experimental-warning-unary-request-duration
    experimental-watch-progress-notify-interval feature-gates grpc-keepalive-interval
    grpc-keepalive-min-time grpc-keepalive-timeout heartbeat-interval host-whitelist
    initial-advertise-peer-urls initial-cluster initial-cluster-state initial-cluster-token
    key-file listen-client-http-urls listen-client-urls listen-metrics-urls listen-peer-urls
    log-format log-level log-outputs log-rotation-config-json logger max-concurrent-streams
    max-learners max-request-bytes max-snapshots max-txn-ops max-wals metrics name
    peer-cert-allowed-cn peer-cert-allowed-hostname peer-cert-file peer-client-cert-file
    peer-client-key-file peer-crl-file peer-key-file peer-trusted-ca-file quota-backend-bytes
    raft-read-timeout raft-write-timeout self-signed-cert-validity snapshot-catchup-entries
    snapshot-count tls-max-version tls-min-version trusted-ca-file v2-deprecation wal-dir
    warning-apply-duration warning-unary-request-duration watch-progress-notify-interval
""")
ETCD: Mapping[str, bool] = {
    **dict.fromkeys(_ETCD_BOOLEANS, True),
    **dict.fromkeys(_ETCD_OTHERS, False),
    EXIT_WITH_PARENT: True,
}
"""Every flag of etcd 3.6, and one of ours."""


def help_text(program: str, known: Mapping[str, bool], without: Sequence[str] = ()) -> str:
    """Return help in the layout that envtest parses: one indented flag per line."""
    shown = sorted(name for name in known if len(name) > 1 and name not in without)
    lines = [f"      --{name}{'' if known[name] else ' string'}" for name in shown]
    return "\n".join([f"{program} of instar", "", "Flags:", *lines, ""])
