"""``python -m tests.reviewer.versus PATH_OF_CRDIFY``: the planted and the harmless changes, judged
by crdify and by us. The figures of docs/explanation/comparison.md.
Not a test, because CI has no crdify.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

from instar.base.json_values import Object
from tests.reviewer.test_planted import HARMLESS, PLANTED
from tests.reviewer.widget import changed, widget

Judge = Callable[[Path, Path], tuple[bool, str]]


def main() -> None:
    (crdify,) = sys.argv[1:]
    ours: list[str | Path] = [sys.executable, "-m", "instar", "review"]
    judges: dict[str, Judge] = {
        "crdify": lambda old, new: run([crdify, f"file://{old}", f"file://{new}"]),
        "instar": lambda old, new: run([*ours, old, new]),
        "instar, warnings too": lambda old, new: run([*ours, "--fail-on", "warning", old, new]),
    }
    planted = {name: changed(change) for name, (change, _) in PLANTED.items()}
    harmless = {name: changed(change) for name, change in HARMLESS.items()}
    for name, judge in judges.items():
        began = os.times().children_user
        found = stopped(judge, planted)
        print(f"{name}: {len(found)} of {len(planted)} planted changes stop the pipeline")
        print(f"  not: {', '.join(sorted(planted.keys() - found.keys()))}")
        print(f"  only as a change it has no name for: {', '.join(unnamed(found))}")
        wrong = stopped(judge, harmless)
        print(f"  {len(wrong)} of {len(harmless)} harmless ones: {', '.join(sorted(wrong))}")
        used = os.times().children_user - began
        print(f"  {used / (len(planted) + len(harmless)):.2f} s of processor time each")


def stopped(judge: Judge, crds: dict[str, Object]) -> dict[str, str]:
    """Change → what was said about it."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        old, new = Path(name, "old.yaml"), Path(name, "new.yaml")
        old.write_text(yaml.safe_dump(widget()))
        for change, crd in crds.items():
            new.write_text(yaml.safe_dump(crd))
            fails, text = judge(old, new)
            if fails:
                found[change] = text
    return found


def run(words: list[str | Path]) -> tuple[bool, str]:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode != 0, done.stdout + done.stderr


def unnamed(texts: dict[str, str]) -> list[str]:
    """crdify reports what it has no validation for as "unhandled", with a dump of both sides."""
    return [
        change
        for change, text in texts.items()
        if all("unhandled" in line for line in text.splitlines() if " - ERROR - " in line)
        and "unhandled" in text
    ]


if __name__ == "__main__":
    main()
