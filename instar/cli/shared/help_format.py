"""Argument parser of all commands: shows every default, prints short usage errors, and has a short
and a full help for commands with very many flags.

``cli/main.py`` creates a parser for the chosen command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NoReturn

_USUAL_TITLE = "usual flags"
_HELP_FLAGS = ("-h", "--help-all")


class Help(argparse.RawDescriptionHelpFormatter):
    """Formats ``--help``: keeps the epilog's lines, and names defaults where the text does not."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help
        if not text or not shows_default(action) or "%(default)" in text or "default:" in text:
            return text
        if isinstance(action.default, bool):
            return f"{text} (default: {str(action.default).lower()})"
        return f"{text} (default: %(default)s)"


class Parser(argparse.ArgumentParser):
    """Argument parser with our formatter; subparsers have the same class.

    With ``usual`` set, ``--help`` shows these flags and the titles of all topics, and
    ``--help-all`` every flag by topic.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": Help, **options})
        self.usual: tuple[str, ...] = ()

    def show_first(self, usual: Collection[str]) -> None:
        """Show only these flags in ``--help``, and add ``--help-all``."""
        self.usual = tuple(usual)
        self.usage = f"{self.prog} [flags]"
        self.add_argument(
            "--help-all", action=_HelpAll, nargs=0, help="show every flag, by topic, and exit"
        )

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        found, rest = super().parse_known_args(args, namespace)
        flags = takewhile(lambda word: word != "--", rest)
        unknown = [word for word in flags if word.startswith("-") and word != "-"]
        if unknown and not self.prog.endswith(_PASSES_ON):
            self.error(self._unknown_flag(unknown[0]))
        return found, rest

    def _unknown_flag(self, word: str) -> str:
        name = word.partition("=")[0]
        near = get_close_matches(name, self._option_string_actions, n=1, cutoff=0.6)
        meant = f"; did you mean {near[0]}?" if near else ""
        return f"unknown flag {name}{meant}"

    def error(self, message: str) -> NoReturn:
        """Print two lines: the error, and the command that shows the flags."""
        print(f"{self.prog}: {message}", file=sys.stderr)
        print(f"'{self.prog} --help' shows how it is called.", file=sys.stderr)
        sys.exit(2)

    def format_help(self) -> str:
        return self.format_usual() if self.usual else super().format_help()

    def format_all(self) -> str:
        return super().format_help()

    def format_usual(self) -> str:
        """Return the help with the usual flags and one line per topic."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        formatter.start_section(_USUAL_TITLE)
        formatter.add_arguments(self._option_string_actions[flag] for flag in self.usual)
        formatter.end_section()
        topics = [
            f"  {group.title} ({_spread(group)})"
            for group in self._action_groups
            if group.title and not _shown(group) <= {*self.usual, *_HELP_FLAGS}
        ]
        heading = "more flags, by topic (--help-all shows them):"
        formatter.add_text("\n".join((heading, *topics)))
        formatter.add_text(self.epilog)
        return formatter.format_help()


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, Parser)
        print(parser.format_all(), end="")
        parser.exit()


_PASSES_ON = ("completion words",)


def _shown(group: argparse._ArgumentGroup) -> set[str]:
    return {
        action.option_strings[0]
        for action in group._group_actions
        if action.option_strings and action.help != argparse.SUPPRESS
    }


def _spread(group: argparse._ArgumentGroup) -> str:
    """Return the first flag of a group and the number of the others."""
    names = [
        action.option_strings[0]
        for action in group._group_actions
        if action.option_strings and action.help != argparse.SUPPRESS
    ]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def shows_default(action: argparse.Action) -> bool:
    """Return whether the flag has a default that can be shown."""
    if not action.option_strings or action.nargs == 0:
        return False
    return action.default not in (None, "", argparse.SUPPRESS, [], ())
