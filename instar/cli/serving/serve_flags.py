"""The flags of ``instar serve``, by topic.

``--help`` shows the most used flags, ``--help-all`` shows all flags. ``cli/commands/serve.py``
turns the values into ``Settings``; larger groups of flags are in the other modules of
``cli/serving``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from instar.base import limits
from instar.cli.serving import admission_flags, background, snapshot_store
from instar.cli.serving.aggregation_flags import add_aggregation_arguments, add_kubelet_arguments
from instar.cli.serving.authentication_flags import add_identity_arguments
from instar.cli.serving.cluster_flags import add_cluster_arguments
from instar.cli.serving.controller_flags import add_controller_arguments
from instar.cli.serving.converter_flags import add_conversion_arguments
from instar.cli.serving.feature_gate_flags import add_feature_gate_arguments
from instar.cli.serving.log_format import FORMS
from instar.cli.serving.runtime_config import add_runtime_arguments
from instar.cli.serving.security_flags import add_guard_arguments
from instar.cli.shared.common_flags import seconds, size
from instar.cli.shared.flag_types import endpoint_address
from instar.cli.shared.help_format import Parser
from instar.cli.shared.storage_flags import add_storage_arguments

USUAL = (
    "--listen",
    "--storage",
    "--kubeconfig",
    "--background",
    "--stop",
    "--from",
    "--read-only",
    "--history",
    "--workers",
    "--converter",
    "--user",
    "--log",
    "--verbose",
)
"""Flags that ``--help`` shows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_address(parser.add_argument_group("address and kubeconfig"))
    _add_process(parser.add_argument_group("processes"))
    _add_storage(parser.add_argument_group("storage and history"))
    add_storage_arguments(parser)
    _add_cluster(parser.add_argument_group("what the cluster is like"))
    add_cluster_arguments(parser.add_argument_group("in a cluster that exists already"))
    add_conversion_arguments(parser)
    admission_flags.add_arguments(parser.add_argument_group("admission"))
    _add_console(parser.add_argument_group("console"))
    add_identity_arguments(parser)
    add_aggregation_arguments(parser)
    add_kubelet_arguments(parser)
    add_guard_arguments(parser)
    logs = parser.add_argument_group("logs")
    logs.add_argument("--log", choices=FORMS, default="text", help="form of log lines")
    logs.add_argument("--verbose", "-v", action="store_true", help="log every request")
    if isinstance(parser, Parser):
        parser.show_first(USUAL)


def _add_address(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--listen",
        metavar="[HOST]:PORT",
        default="127.0.0.1:6443",
        help="without a host every interface; port 0 is a free port",
    )
    add(
        "--advertise-address",
        metavar="IP",
        type=endpoint_address,
        help="address of this server in the endpoints of default/kubernetes (default: the host of "
        "--listen, or the address of the default interface where that is local)",
    )
    add("--kubeconfig", metavar="FILE", type=Path, help="write a kubeconfig here when ready")
    add("--cert-dir", metavar="DIR", type=Path, help="keep CA, certificates and token here")
    add("--tls-name", metavar="NAME", action="append", default=[], help="further certificate names")


def _add_process(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    background.add_background_arguments(group)
    add(
        "--workers",
        metavar="N",
        type=int,
        default=1,
        help="number of server processes on the port; they share objects in memory",
    )
    add("--worker-of", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    add(
        "--exit-with-parent",
        action="store_true",
        help="stop when the process that started this one is gone, also if it was killed",
    )


def _add_storage(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--storage",
        metavar="URL",
        help="sqlite:PATH, memory:, etcd://HOST:PORT,…/PREFIX or postgresql://HOST,…/DATABASE "
        "(default: sqlite:instar.db, memory: with --from)",
    )
    snapshot_store.add_arguments(group)
    add(
        "--values",
        choices=["memory", "disk"],
        default="memory",
        help="where objects are kept: in memory, or on disk with nothing but keys, revisions and "
        "labels in memory (for very many of them; needs a SQLite file, one process)",
    )
    add(
        "--pack-values",
        choices=["auto", "off"],
        default="auto",
        help="auto: keep the objects of large collections compressed in memory, where that makes "
        "them much smaller; off: keep every object as it is sent",
    )
    add(
        "--history",
        metavar="DURATION",
        type=seconds,
        default=300.0,
        help="how long overwritten and deleted objects stay readable: 300, 90m, 24h, 7d "
        "(default: 5m)",
    )
    add(
        "--history-size",
        metavar="SIZE",
        type=size,
        default=limits.HISTORY_BYTES,
        help="size limit of that history, whatever its age: 64Mi, 2Gi (default: 1Gi)",
    )


def _add_cluster(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--namespaces",
        choices=["strict", "open"],
        default="strict",
        help="strict: an object needs an existing namespace; open: any namespace name is accepted",
    )
    add(
        "--review",
        choices=["off", "warn", "deny"],
        default="off",
        help="review CRD updates: warn about breaking changes, or refuse them",
    )
    add(
        "--rescue-deletes",
        action="store_true",
        help="allow deleting objects that cannot be converted (upstream keeps them)",
    )
    add(
        "--service-cluster-ip-range",
        metavar="CIDR",
        default="10.0.0.0/24",
        help="network of the cluster IPs of Services",
    )
    add_controller_arguments(group)
    add_feature_gate_arguments(group)
    add_runtime_arguments(group)
    add(
        "--gc",
        choices=["on", "off"],
        help="delete objects that have lost all their owners (off: like an API server without "
        "controllers; default: on, off with --from)",
    )
    add(
        "--bootstrap-objects",
        "--furniture",
        choices=["on", "off"],
        help="create what every cluster has: accounts, services, classes (off: an empty store; "
        "default: on, off with --from)",
    )


def _add_console(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--console",
        choices=["on", "off"],
        default="on",
        help="the web console at /console (off: nothing is served there)",
    )
    add(
        "--console-oidc-secret-file",
        metavar="FILE",
        type=Path,
        help="secret of the client --oidc-client-id, if it has one",
    )
    add(
        "--console-oidc-scopes",
        metavar="NAMES",
        default="openid profile email",
        help="scopes that the console requests from --oidc-issuer-url, separated by spaces",
    )
