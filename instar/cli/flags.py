"""Flags that several commands have, so that they are called and explained the same everywhere.

Imports nothing heavy: every command takes its flags from here, whatever it needs to run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path


def add_cluster_arguments(parser: argparse._ActionsContainer) -> None:
    """Which cluster."""
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="who asks which cluster (default: $KUBECONFIG, ~/.kube/config, or as the Pod's "
        "ServiceAccount)",
    )
    parser.add_argument("--context", metavar="NAME", help="of the kubeconfig, not its current one")


def add_output_argument(parser: argparse._ActionsContainer, forms: Iterable[str]) -> None:
    """In which form; the first is for people."""
    choices = tuple(forms)
    parser.add_argument(
        "--output", "-o", choices=choices, default=choices[0], help="form of the answer"
    )


def add_workload_arguments(parser: argparse._ActionsContainer, name: str, image: str) -> None:
    """What printed manifests are called."""
    parser.add_argument("--name", metavar="NAME", default=name, help="of everything printed")
    parser.add_argument(
        "--namespace", "-n", metavar="NAME", default="default", help="where it goes"
    )
    parser.add_argument("--image", metavar="IMAGE", default=image, help="what its container runs")
