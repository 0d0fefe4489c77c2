"""Help formatter of all commands: shows every default and keeps preformatted text."""

from __future__ import annotations

import argparse
from typing import Any


class Help(argparse.RawDescriptionHelpFormatter):
    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help
        if not text or not shows_default(action) or "%(default)" in text or "default:" in text:
            return text
        if isinstance(action.default, bool):
            return f"{text} (default: {str(action.default).lower()})"
        return f"{text} (default: %(default)s)"


class Parser(argparse.ArgumentParser):
    """Argument parser with our formatter; subparsers have the same class."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": Help, **options})


def shows_default(action: argparse.Action) -> bool:
    """Return whether the flag has a default that can be shown."""
    if not action.option_strings or action.nargs == 0:
        return False
    return action.default not in (None, "", argparse.SUPPRESS, [], ())
