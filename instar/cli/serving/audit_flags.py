"""Audit flags of ``instar serve``: defines them and turns their values into ``AuditSettings``.

Called by ``cli/serving/security_flags.py``. The flags are named like kube-apiserver's, so that its
command lines can be reused.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from instar.cli.shared.flag_types import boolean, natural, seconds
from instar.server.settings import AuditLogSettings, AuditSettings, AuditWebhookSettings

_VERSION = "audit.k8s.io/v1"
_MODES = (
    "batch: events are dropped, and counted, where {it} cannot keep up; blocking: requests wait; "
    "blocking-strict: they are refused if they cannot be recorded"
)
_NO_EFFECT_HELP = "taken and without effect: the log is written as events come"


def add_audit_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("audit")
    add = group.add_argument
    add("--audit-policy-file", metavar="YAML", type=Path, help="what is recorded; nothing without")
    _add_log_arguments(group)
    add(
        "--audit-webhook-config-file",
        metavar="KUBECONFIG",
        type=Path,
        help="where events are sent, as lists",
    )
    add(
        "--audit-webhook-version",
        choices=[_VERSION],
        default=_VERSION,
        help="of the events sent",
    )
    add(
        "--audit-webhook-mode",
        choices=["batch", "blocking", "blocking-strict"],
        default="batch",
        help=_MODES.format(it="the webhook"),
    )
    add(
        "--audit-webhook-initial-backoff",
        metavar="DURATION",
        type=seconds,
        default=10.0,
        help="seconds before a failed call is tried again, doubled each time",
    )
    _add_batch_arguments(group, "webhook")
    _add_truncate_arguments(group, "webhook")


def _add_log_arguments(group: argparse._ActionsContainer) -> None:
    add = group.add_argument
    add(
        "--audit-log-path",
        metavar="PATH",
        default="",
        help="the log's file; - is standard output (default: no log)",
    )
    add(
        "--audit-log-format",
        choices=["json", "legacy"],
        default="json",
        help="json: whole events; legacy: a line of text each",
    )
    add("--audit-log-version", choices=[_VERSION], default=_VERSION, help="of the events written")
    add(
        "--audit-log-mode",
        choices=["blocking", "batch", "blocking-strict"],
        default="blocking",
        help=_MODES.format(it="the log"),
    )
    number = partial(add, type=natural)
    number("--audit-log-maxsize", metavar="MB", default=100, help="a new file then; 0: any size")
    number("--audit-log-maxage", metavar="DAYS", default=366, help="of old files; 0: for ever")
    number("--audit-log-maxbackup", metavar="N", default=100, help="old files; 0: any number")
    _switch(group, "--audit-log-compress", "old files with gzip")
    _add_batch_arguments(group, "log")
    _add_truncate_arguments(group, "log")


def _add_batch_arguments(group: argparse._ActionsContainer, name: str) -> None:
    lead, sent = f"--audit-{name}-batch-", name == "webhook"
    add = group.add_argument

    def help_text(text: str) -> str:
        return text if sent else _NO_EFFECT_HELP

    add(
        f"{lead}buffer-size",
        metavar="N",
        type=natural,
        default=10_000,
        help="events that may wait; in mode batch more are dropped",
    )
    add(
        f"{lead}max-size",
        metavar="N",
        type=natural,
        default=400 if sent else 1,
        help=help_text("events in one call"),
    )
    add(
        f"{lead}max-wait",
        metavar="DURATION",
        type=seconds,
        default=30.0 if sent else 0.0,
        help=help_text("seconds until a call is made with fewer"),
    )
    _switch(group, f"{lead}throttle-enable", help_text("limit calls a second"), default=sent)
    add(
        f"{lead}throttle-qps",
        metavar="N",
        type=float,
        default=10.0,
        help=help_text("calls a second, on average"),
    )
    add(
        f"{lead}throttle-burst",
        metavar="N",
        type=natural,
        default=15,
        help=help_text("calls at once, after a pause"),
    )


def _add_truncate_arguments(group: argparse._ActionsContainer, name: str) -> None:
    lead = f"--audit-{name}-truncate-"
    add = group.add_argument
    _switch(group, f"{lead}enabled", "leave bodies out of events that are too large")
    add(
        f"{lead}max-event-size",
        metavar="BYTES",
        type=natural,
        default=100 << 10,
        help="larger ones lose their bodies, then all but their head",
    )
    add(
        f"{lead}max-batch-size",
        metavar="BYTES",
        type=natural,
        default=10 << 20,
        help="taken and without effect: batches are bounded by their number of events",
    )


def _switch(
    group: argparse._ActionsContainer, flag: str, text: str, *, default: bool = False
) -> None:
    """Add a flag like Go's booleans: ``--flag``, ``--flag=false``."""
    group.add_argument(
        flag, metavar="BOOL", type=boolean, nargs="?", const=True, default=default, help=text
    )


def audit_settings(args: argparse.Namespace) -> AuditSettings | None:
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
