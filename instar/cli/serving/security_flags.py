"""Encryption, TLS, audit and request limit flags of ``instar serve``.

Called by ``cli/commands/serve.py``; ``audit_flags.py`` has the audit flags. The flags are named
like kube-apiserver's, so that its command lines can be reused.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from instar.base.limits import MAX_STREAMS, READS_AT_ONCE, WRITES_AT_ONCE
from instar.cli.serving.audit_flags import add_audit_arguments, audit_settings
from instar.cli.shared.flag_types import boolean, natural
from instar.server.http.tls import VERSIONS, cipher_string
from instar.server.settings import EncryptionSettings, TlsSettings


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
        type=boolean,
        nargs="?",
        const=True,
        default=False,
        help="use a changed configuration without a restart",
    )
    add_audit_arguments(parser)
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
        type=natural,
        default=READS_AT_ONCE,
        help="concurrent read requests of all users but administrators (0: no limit)",
    )
    add(
        "--max-mutating-requests-inflight",
        metavar="N",
        type=natural,
        default=WRITES_AT_ONCE,
        help="the same of those that write",
    )
    add(
        "--http2-max-streams-per-connection",
        metavar="N",
        type=natural,
        default=MAX_STREAMS,
        help=f"concurrent requests and watches of one HTTP/2 connection (0: {MAX_STREAMS})",
    )


def _add_tls_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("TLS").add_argument
    add("--tls-cert-file", metavar="PEM", type=Path, help="serve this certificate (and its chain)")
    add("--tls-private-key-file", metavar="PEM", type=Path, help="its key; both are read again")
    add(
        "--tls-min-version",
        choices=sorted(VERSIONS),
        default="VersionTLS12",
        help="the oldest version spoken",
    )
    add(
        "--tls-cipher-suites",
        metavar="NAME,…",
        type=_suites,
        default=(),
        help="of TLS 1.2 and before, by IANA's names",
    )
    add(
        "--disable-http2-serving",
        nargs="?",
        const="true",
        default="false",
        choices=("true", "false"),
        help="speak HTTP/1.1 only",
    )


def _suites(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        cipher_string(names)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return names


def guard_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return fields of ``Settings`` by name."""
    return {
        "encryption": _encryption(args),
        "audit": audit_settings(args),
        "tls": TlsSettings(
            cert=args.tls_cert_file,
            key=args.tls_private_key_file,
            minimum=args.tls_min_version,
            ciphers=args.tls_cipher_suites,
            http2=args.disable_http2_serving != "true",
        ),
        "admission_config": args.admission_control_config_file,
        "reads_at_once": args.max_requests_inflight,
        "writes_at_once": args.max_mutating_requests_inflight,
        "streams_at_once": args.http2_max_streams_per_connection or MAX_STREAMS,
    }


def _encryption(args: argparse.Namespace) -> EncryptionSettings | None:
    if args.encryption_provider_config is None:
        return None
    return EncryptionSettings(
        config=args.encryption_provider_config,
        reload=args.encryption_provider_config_automatic_reload,
    )
