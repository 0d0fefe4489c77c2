"""Flags that several commands share, so that names and help are the same everywhere.

Called by ``add_arguments`` of most modules in ``cli/commands``. Imports only light modules, so that
a command's ``--help`` is fast.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path


def add_cluster_arguments(parser: argparse._ActionsContainer, *, paced: bool = True) -> None:
    """Add the flags that choose a cluster and, if ``paced``, those that limit the rate of requests.
    Interactive commands with few requests are not paced.
    """
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="cluster and credentials (default: $KUBECONFIG, ~/.kube/config, or as the Pod's "
        "ServiceAccount)",
    )
    parser.add_argument("--context", metavar="NAME", help="of the kubeconfig, not its current one")
    if paced:
        parser.add_argument(
            "--qps",
            type=_rate,
            default=0,
            metavar="N",
            help="requests a second at most; 0: no limit",
        )


def add_output_argument(parser: argparse._ActionsContainer, forms: Iterable[str]) -> None:
    """Add ``--output``; the first format is the human-readable one."""
    choices = tuple(forms)
    parser.add_argument(
        "--output", "-o", choices=choices, default=choices[0], help="form of the answer"
    )


def add_workload_arguments(parser: argparse._ActionsContainer, name: str, image: str) -> None:
    """Add the flags for names in printed manifests."""
    parser.add_argument("--name", metavar="NAME", default=name, help="of everything printed")
    parser.add_argument(
        "--namespace", "-n", metavar="NAME", default="default", help="where it goes"
    )
    parser.add_argument("--image", metavar="IMAGE", default=image, help="what its container runs")


_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def seconds(text: str) -> float:
    """Parse ``300``, ``90m``, ``24h`` or ``7d``; used as ``type=`` of an argument."""
    unit = _SPANS.get(text[-1:])
    return _positive(text if unit is None else text[:-1], text) * (unit or 1)


def size(text: str) -> int:
    """Parse ``1048576``, ``64Mi``, ``2Gi``."""
    unit = text[-2:] if text[-2:] in _SIZES else ""
    return int(_positive(text.removesuffix(unit), text) * _SIZES[unit])


def _rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of requests a second")
    return number


def _positive(digits: str, text: str) -> float:
    try:
        number = float(digits)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e15:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number above 0, with its unit if it has one"
        )
    return number
