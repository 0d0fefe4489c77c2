"""Flags of ``instar serve`` for serving API groups of a main cluster, behind its aggregation layer.

``serve_flags.py`` adds them, ``cli/commands/serve.py`` turns their values into settings.
"""

from __future__ import annotations

import argparse

from instar.cli.shared.failure import CliFailure
from instar.server.settings import ClusterSettings


def add_cluster_arguments(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--cluster",
        metavar="KUBECONFIG",
        help="serve API groups of this main cluster behind its aggregation layer: users, rights, "
        "namespaces, admission, quotas and CRDs are the main cluster's; in-cluster for the account "
        "of the pod",
    )
    add(
        "--groups",
        metavar="GROUP,…",
        default="",
        help="with --cluster: serve the CRDs of these groups (besides CRDs with the label "
        "instar.dev/served=true)",
    )
    add(
        "--authentication-skip-lookup",
        action="store_true",
        help="with --cluster: do not read CAs and headers of the aggregation layer from the main "
        "cluster; the flags --client-ca-file and --requestheader-… name them",
    )
    add(
        "--authentication-tolerate-lookup-failure",
        action="store_true",
        help="with --cluster: start also if they cannot be read",
    )


def cluster_settings(args: argparse.Namespace) -> ClusterSettings | None:
    groups = tuple(part.strip() for part in args.groups.split(",") if part.strip())
    if args.cluster is None:
        if groups:
            raise CliFailure("--groups: only with --cluster", code=2)
        return None
    if args.workers > 1 or args.worker_of is not None:
        raise CliFailure("--cluster: not with --workers; start more replicas instead", code=2)
    return ClusterSettings(
        kubeconfig=args.cluster,
        groups=groups,
        authentication_lookup=not args.authentication_skip_lookup,
        tolerates_lookup_failure=args.authentication_tolerate_lookup_failure,
    )
