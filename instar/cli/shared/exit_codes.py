"""Meanings of the exit codes per command, printed by ``--help`` and on the documentation site.

``cli/main.py`` adds them to the help of the chosen command.
"""

from __future__ import annotations

from collections.abc import Mapping

EVERYWHERE: Mapping[int, str] = {
    0: "success",
    1: "failure; one line on standard error says why",
    2: "wrong call: an unknown flag, a file that cannot be read or written, a bad kubeconfig",
    130: "interrupted",
}
"""Meanings of the codes that every command has."""

MISTAKES: Mapping[str, int] = {
    "flag": 2,
    "file": 2,
    "kubeconfig": 2,
    "unreachable": 1,
}
"""Exit code by kind of mistake, the same in every command: an unknown flag; a file that is missing,
is a folder, or is not text or YAML; a kubeconfig without the context; a cluster that does not
answer."""

_MEANINGS: Mapping[str, Mapping[int, str]] = {
    "check": {
        0: "no counterexample found",
        1: "at least one counterexample",
        2: "something could not be checked: missing file, no answer, no valid object possible",
    },
    "convert": {
        1: "a document could not be converted; with --check, one would change",
    },
    "migrate": {
        0: "done, or nothing to do",
        1: "something failed, and the output says what",
    },
    "review": {
        0: "nothing at or above --fail-on",
        1: "at least one such finding",
        2: "some input could not be used; the rest was still reviewed",
    },
    "rehearse": {
        0: "go: every step is safe",
        1: "no-go: at least one step is not",
        2: "unusable input or options",
    },
    "snapshot": {
        0: "the file holds everything that was requested",
        1: "failure, or an incomplete file that lists what is missing",
    },
    "test": {
        0: "all cases passed",
        1: "a case failed",
        2: "no suite, or one that cannot be read",
    },
    "upgrade": {
        0: "the cluster matches the files",
        1: "refused, failed or rolled back",
        2: "unusable input",
    },
    "validate": {
        0: "all are valid",
        1: "something was rejected, or its kind is unknown",
        2: "input that cannot be read",
    },
}


def exits(command: str) -> dict[int, str]:
    """Return the exit codes of a command with their meanings."""
    return {**EVERYWHERE, **_MEANINGS.get(command, {})}


def exit_code_help(command: str) -> str:
    """Return the exit code section of a command's help."""
    lines = [f"  {code:<3}  {meaning}" for code, meaning in exits(command).items()]
    return "\n".join(("exit codes:", *lines))
