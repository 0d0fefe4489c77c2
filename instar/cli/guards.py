"""Flags of ``instar serve`` about what lies on the disk, what is recorded and how much is let in.

Named as kube-apiserver's, so that its command lines can be taken over.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from instar.server.settings import EncryptionSettings


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


def guard_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Fields of ``Settings``."""
    return {"encryption": _encryption(args)}


def _encryption(args: argparse.Namespace) -> EncryptionSettings | None:
    if args.encryption_provider_config is None:
        return None
    return EncryptionSettings(
        config=args.encryption_provider_config,
        reload=args.encryption_provider_config_automatic_reload,
    )


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false", "1", "0", "t", "f"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return lowered in ("true", "1", "t")
