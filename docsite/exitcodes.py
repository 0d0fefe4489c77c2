"""What each command's exit code means."""

from __future__ import annotations

from docsite.markdown import plain, table
from instar.cli.main import COMMANDS
from instar.cli.shared.exit_codes import EVERYWHERE, exits


def exit_codes() -> str:
    rows = [(f"`{code}`", plain(meaning)) for code, meaning in EVERYWHERE.items()]
    special = [
        (f"[`instar {name}`](commands.md#instar-{name})", f"`{code}`", plain(meaning))
        for name in COMMANDS
        for code, meaning in exits(name).items()
        if EVERYWHERE[code] != meaning
    ]
    return (
        table(("code", "of every command"), rows)
        + "\nSome commands mean something narrower:\n\n"
        + table(("command", "code", "meaning"), special)
    )
