"""``python -m tests.fuzz.guided SECONDS [PARSER …]``: each parser under atheris (libFuzzer), which
keeps what reaches new code. Needs ``requirements/fuzz.txt``; hypothesis does without."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

_CHILD = "--child"
_LONGEST_INPUT = 4096
_PATIENCE = 10
"""Seconds for one input."""


def main(arguments: list[str]) -> int:
    if arguments[:1] == [_CHILD]:
        return _fuzz(arguments[1], arguments[2:])
    seconds = float(arguments[0]) if arguments else 60.0
    from tests.fuzz.parsers import PARSERS

    names = arguments[1:] or list(PARSERS)
    failed = [name for name in names if not _run(name, seconds / len(names))]
    print(f"FAILED: {', '.join(failed)}" if failed else f"nothing found in {len(names)} parsers")
    return bool(failed)


def _run(name: str, seconds: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        from tests.fuzz.parsers import PARSERS

        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for at, seed in enumerate(PARSERS[name].seeds):
            (corpus / str(at)).write_bytes(seed)
        options = [
            *(f"-max_total_time={max(int(seconds), 1)}", f"-max_len={_LONGEST_INPUT}"),
            *(f"-timeout={_PATIENCE}", "-rss_limit_mb=1024", "-print_final_stats=1"),
            *(f"-artifact_prefix={folder}/", str(corpus)),
        ]
        command = [sys.executable, "-m", "tests.fuzz.guided", _CHILD, name, *options]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        runs = [line for line in ended.stderr.splitlines() if "number_of_executed_units" in line]
        print(f"{name}: {runs[0].rpartition(' ')[2] if runs else '?'} inputs", flush=True)
        if ended.returncode:
            print(ended.stdout[-3000:], ended.stderr[-3000:])
        for artifact in Path(folder).glob("*-*"):
            print(f"  {artifact.name}: {artifact.read_bytes()!r}")
    return not ended.returncode


def _fuzz(name: str, options: list[str]) -> int:
    import atheris

    with atheris.instrument_imports(include=["instar"]):
        from tests.fuzz.parsers import PARSERS, attempt

    parser = PARSERS[name]
    atheris.Setup([sys.argv[0], *options], lambda data: attempt(parser, data))
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
