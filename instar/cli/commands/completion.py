"""``instar completion``: prints shell completion scripts, and the candidates for the word at the
cursor.

The scripts for bash, zsh and fish call this command at every TAB, so that flags are current and CRD
names come from the cluster.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from instar.base.errors import ApiError
from instar.cli.shared.failure import CliFailure
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import KubeconfigError, load_access
from instar.wire.client.paths import crd_path

_SCRIPTS = {
    "bash": """\
_instar() {
  local IFS=$'\\n'
  COMPREPLY=($(instar completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [ ${#COMPREPLY[@]} -gt 0 ] || compopt -o default
}
complete -F _instar instar
""",
    "zsh": """\
#compdef instar
_instar() {
  local -a found
  found=(${(f)"$(instar completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -a found; else _files; fi
}
compdef _instar instar
""",
    "fish": """\
function __instar
  set -l words (commandline -opc) (commandline -ct)
  instar completion words -- $words[2..-1] 2>/dev/null
end
complete -c instar -a '(__instar)'
""",
}
_ASKED_SECONDS = 2.0
"""Time limit for listing CRD names; a TAB should not take longer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "bash: source <(instar completion bash); zsh and fish in the same way."
    parser.add_argument(
        "shell", choices=[*_SCRIPTS, "words"], help="print the script of this shell"
    )
    parser.add_argument("typed", nargs="*", help="with words: the command line so far")


def run(args: argparse.Namespace) -> int:
    if args.shell != "words":
        if args.typed:
            raise CliFailure("arguments are allowed only after `words`", code=2)
        print(_SCRIPTS[args.shell], end="")
        return 0
    for word in completions(args.typed or [""]):
        print(word)
    return 0


def completions(typed: Sequence[str]) -> list[str]:
    """Return the possible completions of the last word."""
    # Imported here, because it lists the commands, including this one.
    from instar.cli.main import COMMANDS, parser_of

    *before, begun = typed
    if not before:
        return _with_prefix(begun, COMMANDS)
    if before[0] not in COMMANDS:
        return []
    try:
        parser = parser_of(before[0])
    except ModuleNotFoundError:
        return []  # the command's extra is not installed
    previous = parser._option_string_actions.get(before[-1]) if len(before) > 1 else None
    if previous is not None and previous.nargs != 0:
        return _with_prefix(begun, previous.choices or ())
    if begun.startswith("-"):
        return _with_prefix(begun, parser._option_string_actions)
    return _with_prefix(begun, _positionals(parser, before))


def _positionals(parser: argparse.ArgumentParser, before: Sequence[str]) -> Iterator[str]:
    for action in parser._actions:
        if action.option_strings:
            continue
        if action.choices:
            yield from map(str, action.choices)
        elif action.dest == "crd":
            yield from _crd_names(before)


def _with_prefix(begun: str, words: object) -> list[str]:
    assert hasattr(words, "__iter__")
    return sorted(word for word in map(str, words) if word.startswith(begun))


def _crd_names(before: Sequence[str]) -> list[str]:
    given = dict(pairwise(before))
    kubeconfig = Path(given["--kubeconfig"]) if "--kubeconfig" in given else None

    async def names() -> list[str]:
        async with (
            asyncio.timeout(_ASKED_SECONDS),
            Client(load_access(kubeconfig, given.get("--context"))) as client,
        ):
            pages = [page async for page in client.metadata_pages(crd_path())]
            return [str(crd["metadata"]["name"]) for page in pages for crd in page["items"]]

    try:
        return asyncio.run(names())
    except (KubeconfigError, ApiError, TimeoutError, OSError, ModuleNotFoundError):
        return []  # a completion cannot show an error
