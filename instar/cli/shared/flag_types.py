"""Parsers of flag values (``type=``), with errors that name the value.

Used by the flags of ``instar serve``.
"""

from __future__ import annotations

import argparse

from instar.base.errors import ApiError
from instar.server.files.host_address import is_reachable
from instar.server.rest.deadlines import duration


def natural(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def seconds(text: str) -> float:
    try:
        return duration(text)
    except ApiError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 30s") from error


def boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false", "1", "0", "t", "f"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return lowered in ("true", "1", "t")


def endpoint_address(text: str) -> str:
    """An address that other machines can dial."""
    if not is_reachable(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no address that other machines can reach")
    return text
