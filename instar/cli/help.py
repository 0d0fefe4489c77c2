"""How ``--help`` looks: every default is shown, and texts with lines of their own keep them."""

from __future__ import annotations

import argparse
from pathlib import Path


class Help(argparse.RawDescriptionHelpFormatter):
    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help
        if not text or not action.option_strings or "%(default)" in text or "default:" in text:
            return text
        value = action.default
        if value in (None, "", argparse.SUPPRESS) or isinstance(value, bool | list | tuple | Path):
            return text
        return f"{text} (default: %(default)s)"
