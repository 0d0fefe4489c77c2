"""Flags of ``instar adopt``, and what they mean.

``__init__.py`` is the command.
"""

from __future__ import annotations

import argparse
import base64
from pathlib import Path

from instar.cli.shared.common_flags import add_cluster_arguments, add_output_argument, seconds
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.storage_flags import add_storage_arguments
from instar.kube.api.adoption import API_SERVICE
from instar.tools.adopter.move import MoveOptions

_HELP = """\
Writes are refused for a few seconds, reads never. Run it again after it was killed: it goes on, or
begins anew. Objects stay in etcd: do not delete the CRDs, which would delete them there.

  instar adopt reports.example.com --plan
  instar adopt reports.example.com
  instar adopt --return reports.example.com
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _HELP
    add = parser.add_argument
    add("group", metavar="GROUP", help="the API group; all its CRDs and versions move together")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--plan", action="store_true", help="show what would happen; change nothing")
    mode.add_argument(
        "--abort", action="store_true", help="go back from an adoption that was not finished"
    )
    add("--return", dest="back", action="store_true", help="move the group back to the cluster")
    add(
        "--free-etcd",
        action="store_true",
        help="of an adopted group: remove its objects from the cluster's etcd (--etcd), after "
        "checking that instar has each one",
    )
    add(
        "--instar-service",
        metavar="NAMESPACE/NAME[:PORT]",
        type=_service,
        help=f"instar's Service, to make the APIService {API_SERVICE} if it is not there",
    )
    add(
        "--ca-file",
        metavar="PEM",
        type=Path,
        help="CA of that Service's certificate",
    )
    add(
        "--api-server",
        metavar="URL",
        action="append",
        default=[],
        help="an API server of the cluster; once for each (default: the endpoints of "
        "default/kubernetes)",
    )
    add(
        "--in-flight",
        metavar="TIME",
        type=seconds,
        help="how long to wait for writes that were admitted before the freeze (default: 1s, or "
        "the longest timeout of a validating webhook for the group)",
    )
    add(
        "--add-version",
        metavar="VERSION",
        action="append",
        default=[],
        help="of an adopted group: route a version to instar, so that its CRDs may serve it",
    )
    add("--journal", metavar="FILE", type=Path, help="default: adopt-GROUP.json")
    _add_overwriting_arguments(parser)
    add_output_argument(parser, ("text", "json"))
    add_cluster_arguments(parser, paced=False)
    add_storage_arguments(parser)


def _add_overwriting_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--discard",
        action="store_true",
        help="replace objects of the group that only instar has; with --return: delete those that "
        "only the cluster has, although instar did not adopt the group",
    )
    add(
        "--accept-new-uids",
        action="store_true",
        help="with --return: objects created in instar get a new identity and creationTimestamp",
    )
    add(
        "--etcd",
        metavar="URL",
        default="",
        help="the cluster's etcd (etcd://HOST:PORT); with --return: write objects there as they "
        "are",
    )


def _service(text: str) -> tuple[str, str, int]:
    place, _, port = text.partition(":")
    namespace, _, name = place.partition("/")
    if not (namespace and name) or (port and not port.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAMESPACE/NAME or NAMESPACE/NAME:PORT")
    return namespace, name, int(port or 443)


def ca_bundle(args: argparse.Namespace) -> str:
    """Return the CA of ``--ca-file`` in base64. Raises ``CliFailure`` if it is missing or
    unreadable."""
    if args.instar_service is None:
        return ""
    if args.ca_file is None:
        raise CliFailure("--instar-service: needs --ca-file", code=2)
    try:
        return base64.b64encode(args.ca_file.read_bytes()).decode()
    except OSError as error:
        raise CliFailure(f"--ca-file {args.ca_file}: {error.strerror}", code=2) from None


def move_options(args: argparse.Namespace) -> MoveOptions:
    """Return the options of the move that the flags give."""
    return MoveOptions(
        in_flight=args.in_flight,
        discard=args.discard,
        accept_new_uids=args.accept_new_uids,
        add_versions=tuple(args.add_version),
        etcd=args.etcd,
    )
