"""Flags of ``instar serve`` about what lies on the disk, what is recorded and how much is let in.

Named as kube-apiserver's, so that its command lines can be taken over.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from instar.errors import ApiError
from instar.limits import READS_AT_ONCE, WRITES_AT_ONCE
from instar.server.http.tls import VERSIONS, cipher_string
from instar.server.rest.deadlines import duration
from instar.server.settings import (
    AuditLogSettings,
    AuditSettings,
    AuditWebhookSettings,
    EncryptionSettings,
    TlsSettings,
)


def add_guard_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("encryption at rest").add_argument
    add(
        "--encryption-provider-config",
        metavar="YAML",
        type=Path,
        help="an EncryptionConfiguration: which resources lie in the store under which keys",
    )
    add(
        "--encryption-provider-config-automatic-reload",
        metavar="BOOL",
        type=_boolean,
        nargs="?",
        const=True,
        default=False,
        help="use a changed configuration without a restart",
    )
    _add_audit_arguments(parser)
    _add_tls_arguments(parser)
    add = parser.add_argument_group("limits").add_argument
    add(
        "--admission-control-config-file",
        metavar="YAML",
        type=Path,
        help="an AdmissionConfiguration: the limits of EventRateLimit",
    )
    add(
        "--max-requests-inflight",
        metavar="N",
        type=_natural,
        default=READS_AT_ONCE,
        help="unfinished requests that read, of all users who are no administrators (0: any)",
    )
    add(
        "--max-mutating-requests-inflight",
        metavar="N",
        type=_natural,
        default=WRITES_AT_ONCE,
        help="the same of those that write",
    )


def _add_tls_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("TLS").add_argument
    add("--tls-cert-file", metavar="PEM", type=Path, help="serve this certificate (and its chain)")
    add("--tls-private-key-file", metavar="PEM", type=Path, help="its key; both are read again")
    add(
        "--tls-min-version",
        choices=sorted(VERSIONS),
        default="VersionTLS12",
        help="the oldest TLS that is spoken",
    )
    add(
        "--tls-cipher-suites",
        metavar="NAME,…",
        type=_suites,
        default=(),
        help="of TLS 1.2 and before, by IANA's names",
    )


def _suites(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        cipher_string(names)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return names


def _add_audit_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("audit")
    add = group.add_argument
    add("--audit-policy-file", metavar="YAML", type=Path, help="what is recorded; nothing without")
    add("--audit-log-path", metavar="PATH", default="", help="- is standard output")
    add(
        "--audit-log-format",
        choices=["json", "legacy"],
        default="json",
        help="legacy: one line of words for each event",
    )
    add(
        "--audit-log-version",
        choices=["audit.k8s.io/v1"],
        default="audit.k8s.io/v1",
        help="of the events",
    )
    add(
        "--audit-log-mode",
        choices=["blocking", "batch", "blocking-strict"],
        default="blocking",
        help="batch: events are dropped, and counted, where the log cannot keep up; blocking: "
        "requests wait; blocking-strict: they are refused if they cannot be recorded",
    )
    add("--audit-log-maxsize", metavar="MB", type=_natural, default=100, help="0: any size")
    add("--audit-log-maxage", metavar="DAYS", type=_natural, default=366, help="0: for ever")
    add("--audit-log-maxbackup", metavar="N", type=_natural, default=100, help="0: any number")
    add(
        "--audit-log-compress",
        metavar="BOOL",
        type=_boolean,
        nargs="?",
        const=True,
        default=False,
        help="gzip files that are full",
    )
    add(
        "--audit-webhook-config-file",
        metavar="KUBECONFIG",
        type=Path,
        help="who is sent the events",
    )
    add(
        "--audit-webhook-version",
        choices=["audit.k8s.io/v1"],
        default="audit.k8s.io/v1",
        help="of the events",
    )
    add(
        "--audit-webhook-mode",
        choices=["batch", "blocking", "blocking-strict"],
        default="batch",
        help="batch: many events in a call; else one each",
    )
    add(
        "--audit-webhook-initial-backoff",
        metavar="DURATION",
        type=_seconds,
        default=10.0,
        help="the wait before a call is tried again",
    )
    for name in ("log", "webhook"):
        _add_batch_arguments(group, name)


_LOG_HAS_NONE = "of the webhook's; a log is written event by event, so it changes nothing here"


def _add_batch_arguments(group: argparse._ArgumentGroup, name: str) -> None:
    """Upstream has all of them for both; what has no effect says so."""
    log = name == "log"

    def told(text: str) -> str:
        return _LOG_HAS_NONE if log else text

    def add(flag: str, value: Any, kind: Callable[[str], Any], metavar: str, help: str) -> None:
        optional: dict[str, Any] = {"nargs": "?", "const": True} if kind is _boolean else {}
        group.add_argument(
            f"--audit-{name}-{flag}",
            metavar=metavar,
            type=kind,
            default=value,
            help=help,
            **optional,
        )

    add("batch-buffer-size", 10_000, _natural, "N", "events that may wait; more are dropped")
    add("batch-max-size", 1 if log else 400, _natural, "N", told("events in one call"))
    wait = told("until a call is made with fewer")
    add("batch-max-wait", 0.0 if log else 30.0, _seconds, "DURATION", wait)
    add("batch-throttle-enable", not log, _boolean, "BOOL", told("bound the calls a second"))
    add("batch-throttle-qps", 10.0, float, "N", told("calls a second, on average"))
    add("batch-throttle-burst", 15, _natural, "N", told("calls at once after a pause"))
    add("truncate-enabled", False, _boolean, "BOOL", "leave objects out of events that are large")
    size = "bytes beyond which an event is large"
    add("truncate-max-event-size", 100 << 10, _natural, "BYTES", size)
    batch = "taken and not needed: events are cut one by one"
    add("truncate-max-batch-size", 10 << 20, _natural, "BYTES", batch)


def guard_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Fields of ``Settings``."""
    return {
        "encryption": _encryption(args),
        "audit": _audit(args),
        "tls": TlsSettings(
            cert=args.tls_cert_file,
            key=args.tls_private_key_file,
            minimum=args.tls_min_version,
            ciphers=args.tls_cipher_suites,
        ),
        "admission_config": args.admission_control_config_file,
        "reads_at_once": args.max_requests_inflight,
        "writes_at_once": args.max_mutating_requests_inflight,
    }


def _audit(args: argparse.Namespace) -> AuditSettings | None:
    if args.audit_policy_file is None:
        return None
    return AuditSettings(
        policy=args.audit_policy_file, log=_audit_log(args), webhook=_audit_webhook(args)
    )


def _audit_log(args: argparse.Namespace) -> AuditLogSettings | None:
    if not args.audit_log_path:
        return None
    return AuditLogSettings(
        path=args.audit_log_path,
        format=args.audit_log_format,
        mode=args.audit_log_mode,
        megabytes=args.audit_log_maxsize,
        days=args.audit_log_maxage,
        backups=args.audit_log_maxbackup,
        compress=args.audit_log_compress,
        room=args.audit_log_batch_buffer_size,
        longest=args.audit_log_truncate_max_event_size if args.audit_log_truncate_enabled else 0,
    )


def _audit_webhook(args: argparse.Namespace) -> AuditWebhookSettings | None:
    if args.audit_webhook_config_file is None:
        return None
    batched = args.audit_webhook_mode == "batch"
    size = args.audit_webhook_truncate_max_event_size
    return AuditWebhookSettings(
        config=args.audit_webhook_config_file,
        room=args.audit_webhook_batch_buffer_size,
        most=max(1, args.audit_webhook_batch_max_size) if batched else 1,
        wait=args.audit_webhook_batch_max_wait if batched else 0.0,
        throttled=args.audit_webhook_batch_throttle_enable and batched,
        per_second=args.audit_webhook_batch_throttle_qps,
        burst=args.audit_webhook_batch_throttle_burst,
        backoff=args.audit_webhook_initial_backoff,
        longest=size if args.audit_webhook_truncate_enabled else 0,
    )


def _encryption(args: argparse.Namespace) -> EncryptionSettings | None:
    if args.encryption_provider_config is None:
        return None
    return EncryptionSettings(
        config=args.encryption_provider_config,
        reload=args.encryption_provider_config_automatic_reload,
    )


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        return duration(text)
    except ApiError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 30s") from error


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false", "1", "0", "t", "f"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return lowered in ("true", "1", "t")
