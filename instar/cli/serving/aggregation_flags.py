"""Aggregation flags of ``instar serve``: how APIs of other servers, and kubelets, are reached.

Called by ``cli/commands/serve.py``. The flags are named like kube-apiserver's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from instar.cli.shared.failure import CliFailure
from instar.server.settings import (
    KUBELET_ADDRESS_TYPES,
    AggregationSettings,
    KubeletSettings,
)

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


def add_kubelet_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "kubelets (of Nodes with status.daemonEndpoints.kubeletEndpoint)"
    ).add_argument
    add("--kubelet-client-certificate", metavar="PEM", type=Path, help="client certificate")
    add("--kubelet-client-key", metavar="PEM", type=Path, help="its key")
    add(
        "--kubelet-certificate-authority",
        metavar="PEM",
        type=Path,
        help="CA of the kubelets' certificates, which are not verified without it",
    )
    add(
        "--kubelet-preferred-address-types",
        metavar="TYPES",
        default=",".join(KUBELET_ADDRESS_TYPES),
        help="which address of a Node is used, with commas (default: %(default)s)",
    )


def kubelet_settings(args: argparse.Namespace) -> KubeletSettings:
    """Raises ``CliFailure`` for half a pair of certificate and key, a file that is not there, and
    unknown types."""
    cert, key = args.kubelet_client_certificate, args.kubelet_client_key
    if (cert is None) != (key is None):
        raise CliFailure(
            "--kubelet-client-certificate and --kubelet-client-key belong together", code=2
        )
    for path in filter(None, (cert, key, args.kubelet_certificate_authority)):
        if not path.is_file():
            raise CliFailure(f"{path}: no such file", code=2)
    types = tuple(args.kubelet_preferred_address_types.split(","))
    unknown = set(types) - set(KUBELET_ADDRESS_TYPES)
    if unknown:
        raise CliFailure(
            f"--kubelet-preferred-address-types: unknown type {min(unknown)!r}", code=2
        )
    return KubeletSettings(cert, key, args.kubelet_certificate_authority, types)


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
