"""What a command's exit code means: ``--help`` and the reference on the site tell it from here."""

from __future__ import annotations

from collections.abc import Mapping

EVERYWHERE: Mapping[int, str] = {
    0: "it worked",
    1: "it did not, and one line on standard error says why",
    2: "a wrong call: a flag, a file or an address that cannot be used",
    130: "interrupted",
}

_MEANT: Mapping[str, Mapping[int, str]] = {
    "check": {
        0: "no counterexample",
        1: "at least one",
        2: "something could not be checked: no such file, no answer, no valid object to be made",
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
    "snapshot": {
        0: "all that was asked for is in the file",
        1: "it failed, or the file is not complete and says what is missing",
    },
    "test": {
        0: "all cases passed",
        1: "a case failed",
        2: "no suite, or one that cannot be read",
    },
    "upgrade": {
        0: "the cluster is as the files say",
        1: "refused, failed or taken back",
        2: "unusable input",
    },
    "validate": {
        0: "all are valid",
        1: "something was refused, or is of a kind nobody knows",
        2: "input that cannot be read",
    },
}


def exits(command: str) -> dict[int, str]:
    return {**EVERYWHERE, **_MEANT.get(command, {})}


def told(command: str) -> str:
    """For the end of a command's help."""
    lines = [f"  {code:<3}  {meaning}" for code, meaning in exits(command).items()]
    return "\n".join(("exit codes:", *lines))
