"""How ``--help`` looks: every default is shown, and texts with lines of their own keep them."""

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
    """Parsers below it are of this class as well, so that their help looks the same."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": Help, **options})


def shows_default(action: argparse.Action) -> bool:
    """Whether leaving this flag out means a value that can be named."""
    if not action.option_strings or action.nargs == 0:
        return False
    return action.default not in (None, "", argparse.SUPPRESS, [], ())
