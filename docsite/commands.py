"""Every command with every flag, from the parsers themselves.

A new command is here as soon as ``instar.cli.main.COMMANDS`` has it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from docsite.markdown import code, plain, sentence, table
from instar.cli.main import COMMANDS, EXTRAS, parser_of
from instar.cli.shared.help_format import Help

_WIDTH = 100


def commands() -> str:
    rows = [(f"[`instar {name}`](#instar-{name})", plain(text)) for name, text in COMMANDS.items()]
    return table(("command", "what it does"), rows) + "".join(
        f"\n{section}" for name in COMMANDS for section in _command(name)
    )


def extras() -> str:
    """Which commands come with which extra of the package."""
    names: dict[str, list[str]] = {}
    for command in COMMANDS:
        names.setdefault(EXTRAS[command], []).append(
            f"[`{command}`](../reference/commands.md#instar-{command})"
        )
    rows = ((code(f"instar[{extra}]"), ", ".join(found)) for extra, found in sorted(names.items()))
    return table(("extra", "commands"), rows)


def _command(name: str) -> Iterator[str]:
    parser = parser_of(name, "instar")
    yield f"## instar {name}\n\n{plain(sentence(COMMANDS[name]))}\n"
    yield f"Comes with `pip install 'instar[{EXTRAS[name]}]'`.\n"
    yield from _parser(parser)
    if parser.epilog:
        yield f"```text\n{parser.epilog.strip()}\n```\n"


def _parser(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The usage, the arguments by their groups, and the commands below this one."""
    yield f"```sh\n{_usage(parser)}\n```\n"
    yield f"```{{program}} {parser.prog}\n```\n"
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if _is_told(action)]
        if actions and group.title:
            yield f"```{{rubric}} {plain(sentence(group.title)[:-1])}\n```\n"
            yield from (_option(action) for action in actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {each.dest: each.help or "" for each in action._choices_actions}
            for name, below in action.choices.items():
                yield f"### {below.prog}\n\n{plain(sentence(texts.get(name, '')))}\n"
                yield from _parser(below)


def _is_told(action: argparse.Action) -> bool:
    silent = isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    return not silent and action.help != argparse.SUPPRESS


def _usage(parser: argparse.ArgumentParser) -> str:
    words = [parser.prog]
    if any(action.option_strings and _is_told(action) for action in parser._actions):
        words.append("[flags]")
    words += [
        "ACTION …" if isinstance(action, argparse._SubParsersAction) else _values(action)
        for action in parser._actions
        if not action.option_strings
    ]
    return " ".join(words)


def _option(action: argparse.Action) -> str:
    formatter = Help("instar", width=_WIDTH)
    text = plain(formatter._expand_help(action)) if action.help else ""
    return f"```{{option}} {', '.join(_spellings(action))}\n{text}\n```\n"


def _spellings(action: argparse.Action) -> Iterator[str]:
    if not action.option_strings:
        yield _values(action)
    for name in action.option_strings:
        yield name if action.nargs == 0 else f"{name} {_values(action)}"


def _values(action: argparse.Action) -> str:
    """What stands for an argument's value, with brackets where it may be left out."""
    formatter = Help("instar", width=_WIDTH)
    name = action.dest.upper() if action.option_strings else action.dest
    return formatter._format_args(action, name)
