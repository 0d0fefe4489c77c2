"""Aggregation flags of ``instar serve``: how APIs of other servers are reached.

Called by ``cli/commands/serve.py``. The flags are named like kube-apiserver's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from instar.cli.shared.failure import CliFailure
from instar.server.settings import AggregationSettings

_BOOLEANS = ("true", "false")


def add_aggregation_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "APIs of other servers (APIServices with a Service)"
    ).add_argument
    add(
        "--proxy-client-cert-file",
        metavar="PEM",
        type=Path,
        help="client certificate for these servers (default: one made in --cert-dir, published in "
        "kube-system/extension-apiserver-authentication; none with --requestheader-client-ca-file)",
    )
    add("--proxy-client-key-file", metavar="PEM", type=Path, help="its key")
    add(
        "--enable-aggregator-routing",
        nargs="?",
        const="true",
        default="false",
        choices=_BOOLEANS,
        help="dial ready endpoints of a Service instead of its cluster IP",
    )
    add(
        "--aggregator-reject-forwarding-redirect",
        nargs="?",
        const="true",
        default="true",
        choices=_BOOLEANS,
        help="answer 502 where one of these servers redirects (default: %(default)s)",
    )


def aggregation_settings(args: argparse.Namespace) -> AggregationSettings:
    """Raises ``CliFailure`` for half a pair of certificate and key."""
    cert, key = args.proxy_client_cert_file, args.proxy_client_key_file
    if (cert is None) != (key is None):
        raise CliFailure(
            "--proxy-client-cert-file and --proxy-client-key-file belong together", code=2
        )
    return AggregationSettings(
        client_cert=cert,
        client_key=key,
        by_endpoints=args.enable_aggregator_routing == "true",
        refuse_redirects=args.aggregator_reject_forwarding_redirect == "true",
    )
