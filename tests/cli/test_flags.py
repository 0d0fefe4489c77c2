"""Every flag of every command: it has a text, shows its default, and means one thing everywhere.

Walks the parsers of all commands there are, so a new command is judged without a word here.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from instar.cli.main import COMMANDS, main, parser_of
from instar.cli.shared.help_format import Parser, shows_default

ALSO_CALLED = {
    "--crds": "--crd",
    "--format": "--output",
    "--kube-config": "--kubeconfig",
    "--kube-context": "--context",
    "--ns": "--namespace",
    "--dryrun": "--dry-run",
    "--etcd-ca": "--etcd-cafile",
    "--etcd-cert": "--etcd-certfile",
    "--etcd-key": "--etcd-keyfile",
    "--url": "--webhook",
    "--ca": "--webhook-ca",
    "--insecure": "--webhook-insecure",
    "--details": "--verbose",
    "--client-ca": "--client-ca-file",
    "-o": "--output",
    "-i": "--in-place",
    "-n": "--namespace",
    "-v": "--verbose",
    "-j": "--jobs",
}
"""Another word for a thing is there only beside the one that every command has."""
NOT_THE_SAME = {
    "--accept": "objects a migration changed, verdicts of a rehearsal",
    "--admission": "plugins of a server, handlers to check, configurations to review",
    "--crd": "one CRD is checked, with any number one tests, converts and validates",
    "--from": "a version to come from, or a copy of a cluster",
    "--group": "of a user any number, of a CRD one",
    "--history": "of a server seconds, of a review a file",
    "--kubeconfig": "a server writes one",
    "--output": "a review has several at once; what writes code names a file",
    "-o": "the same",
    "--name": "filters ask for one, manifests get one",
    "--wait": "a server to be ready, in any unit; a CRD to be established, in seconds",
    "--to": "manifests go to a version, a rehearsal to releases",
    "--webhook": "a rehearsal has many CRDs, so its may name one",
}
WRONG = re.compile(
    r"\b(Api|Apis|Crd|Crds|Tls|Http|Https|Json|Yaml|Url|Uri|Pem|Oidc|Rbac|Uid|Cel|Sarif|Ca|Sqlite|"
    r"Etcd|Github|api|crd|crds|tls|http|json schema|yaml|url|pem|oidc|rbac|uid)\b"
)
NAMES = re.compile(
    r"--[\w-]+|[\w./:-]+\.(?:yaml|json|toml|db|io|com|sdk)[\w.:-]*|\S*[/:=]\S*|'[^']*'|\{[^}]*\}"
)


class Flag(NamedTuple):
    command: str
    action: argparse.Action

    def __str__(self) -> str:
        return f"{self.command} {'/'.join(self.action.option_strings) or self.action.dest}"


def _flags(parser: argparse.ArgumentParser, command: str) -> Iterator[Flag]:
    for action in parser._actions:
        yield Flag(command, action)
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from _flags(below, f"{command} {name}")


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _parsers(below)


def _whole_help(parser: argparse.ArgumentParser) -> str:
    return parser.format_all() if isinstance(parser, Parser) else parser.format_help()


def _all() -> list[Flag]:
    return [flag for command in COMMANDS for flag in _flags(parser_of(command), command)]


def test_every_flag_says_what_it_does() -> None:
    mute = [str(flag) for flag in _all() if not (flag.action.help or "").strip()]

    assert mute == []


def test_every_default_is_shown() -> None:
    hidden: list[str] = []
    for command in COMMANDS:
        for parser in _parsers(parser_of(command)):
            shown = " ".join(_whole_help(parser).split())
            for action in parser._actions:
                if action.help == argparse.SUPPRESS or not shows_default(action):
                    continue
                text = str(action.default)
                text = text.lower() if isinstance(action.default, bool) else text
                if f"default: {text}" not in shown and "default:" not in str(action.help):
                    hidden.append(f"{command} {action.option_strings}")

    assert hidden == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_can_be_read(command: str) -> None:
    for parser in _parsers(parser_of(command)):
        text = _whole_help(parser)

        assert "%(" not in text
        assert "None)" not in text
        assert WRONG.findall(_prose(parser)) == []


def _prose(parser: argparse.ArgumentParser) -> str:
    """Help texts without what a program reads: flags, files, values."""
    texts = [parser.description or "", *(str(action.help or "") for action in parser._actions)]
    choices = {str(each) for action in parser._actions for each in action.choices or ()}
    words = NAMES.sub(" ", "\n".join(texts))
    return " ".join(word for word in words.split() if word.strip(".,;:()") not in choices)


def test_values_have_a_name_in_capitals() -> None:
    """``--seed N`` and not ``--seed SEED``: what is wanted, not the flag once more."""
    nameless = [
        str(flag)
        for flag in _all()
        if flag.action.nargs != 0
        and flag.action.option_strings
        and not flag.action.choices
        and not flag.action.metavar
    ]

    assert nameless == []


def test_a_thing_has_one_name_everywhere() -> None:
    strange = [
        f"{flag}: {word} without {wanted}"
        for flag in _all()
        for word, wanted in ALSO_CALLED.items()
        if word in flag.action.option_strings and wanted not in flag.action.option_strings
    ]

    assert strange == []


def test_a_flag_is_the_same_thing_everywhere() -> None:
    by_name: dict[str, dict[Any, list[str]]] = defaultdict(lambda: defaultdict(list))
    for flag in _all():
        for name in flag.action.option_strings:
            by_name[name][_shape(flag.action)].append(flag.command)

    different = {name: dict(shapes) for name, shapes in by_name.items() if len(shapes) > 1}

    assert {name: shapes for name, shapes in different.items() if name not in NOT_THE_SAME} == {}


def _shape(action: argparse.Action) -> tuple[str, object]:
    """How it is given; which of several forms there are may differ."""
    return type(action).__name__, "choices" if action.choices else action.metavar


@pytest.mark.parametrize("command", [*COMMANDS, "help"])
def test_a_command_with_two_letters_swapped_is_recognised(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = command[0] + command[2] + command[1] + command[3:]

    with pytest.raises(SystemExit) as ended:
        main([typed])

    told = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert len(told) == 2
    assert typed == command or command in told[0].partition("did you mean")[2]
