"""Unified YAML diffs of two objects for the terminal, optionally in colour.

Used by ``instar history`` and ``instar restore``.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Iterator

from instar.base.json_values import Object
from instar.kube.api.encoding.yaml_text import write_yaml

_CODES = {"bold": "1", "red": "31", "green": "32", "cyan": "36"}
_COLOUR_BY_SIGN = {"-": "red", "+": "green", "@": "cyan"}


def add_colour_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="auto: on a terminal"
    )


def wants_colour(args: argparse.Namespace) -> bool:
    if args.color != "auto":
        return bool(args.color == "always")
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def add_colour(text: str, style: str, wanted: bool) -> str:
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if wanted else text


def diff(old: Object, new: Object, colour: bool) -> Iterator[str]:
    """Yield the changed lines with context."""
    left, right = (write_yaml(each).decode().splitlines() if each else [] for each in (old, new))
    for line in list(difflib.unified_diff(left, right, lineterm="", n=2))[2:]:
        style = _COLOUR_BY_SIGN.get(line[:1])
        yield add_colour(line, style, colour) if style else line
