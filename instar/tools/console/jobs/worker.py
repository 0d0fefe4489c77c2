"""Child process of the web console that runs one long task: a review, or a check of a converter.

``supervisor.py`` starts it as ``python -m instar.tools.console.jobs.worker SECONDS``. The process
has no credentials and opens no connection; it asks the console process for cluster data over a
pipe.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import Any

from instar.base.json_values import Object
from instar.tools.console.jobs.protocol import JobLine

_MEMORY_LIMIT = 2 << 30
"""Bytes of address space; an allocation beyond this limit fails."""
_NICENESS = 10
"""Added to the niceness, so that the console process runs first."""


class JobRejected(Exception):
    """The job cannot be done; the message says why."""


def main() -> int:
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    os.nice(_NICENESS)
    line = JobLine(sys.stdin.buffer, sys.stdout.buffer)
    sys.stdout = sys.stderr  # prints of libraries must not mix with the protocol
    line.send(_done(line, line.hear()))
    return 0


def _done(line: JobLine, work: Object) -> Object:
    try:
        return {"result": _result(line, work)}
    except JobRejected as error:
        return {"refused": str(error)}


def _result(line: JobLine, work: Object) -> Any:
    # Imported here: each job needs half of a tool.
    if work["job"] == "review":
        from instar.tools.console.jobs.reviewing import run_review

        return run_review(work)
    from instar.tools.sdk.checking.case import Uncheckable

    try:
        from instar.tools.console.jobs.checking import run_check
    except ModuleNotFoundError as error:
        raise JobRejected(f"this needs {error.name}: pip install 'instar[sdk]'") from error
    try:
        return run_check(work, line)
    except Uncheckable as error:
        raise JobRejected(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
