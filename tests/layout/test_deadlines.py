"""asyncio's deadlines and task groups need a task, and a request may be in none (``parking.py``).

What a request can come to uses ``parking.within``; whoever uses asyncio's own is listed with the
reason why a task is sure to be there.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEED_A_TASK = {"timeout", "timeout_at", "wait_for", "TaskGroup"}

LISTED = {
    "instar/parking.py": "makes the task",
    "instar/cli/completion.py": "a command",
    "instar/cli/workers.py": "a command",
    "instar/conversion/inprocess.py": "makes a task for each call",
    "instar/conversion/webhook.py": "under together.py, which makes a task for each call",
    "instar/webhooks/transport.py": "its callers make tasks: admission, together.py, audit",
    "instar/registry/admission/local.py": "calling.py makes a task for each call",
    "instar/console/jobs/running.py": "the process was waited for before",
    "instar/identity/oidc/trusted.py": "the task that watches the file",
    "instar/migrator/run.py": "a run is a task",
    "instar/rehearsal/stage.py": "a command",
    "instar/restorer/crds.py": "a command",
    "instar/rpc/channel.py": "connecting is a task",
    "instar/server/http/connections.py": "the task of the server's end",
}


def test_deadlines_that_need_a_task_are_listed() -> None:
    found = {str(file.relative_to(ROOT)) for file in ROOT.glob("instar/**/*.py") if _uses(file)}

    assert found - LISTED.keys() == set(), "use parking.within, or say why there is a task"
    assert LISTED.keys() - found == set(), "listed in vain"


def _uses(file: Path) -> bool:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "asyncio" and node.attr in NEED_A_TASK:
                return True
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            return True  # under another name it would not be seen
    return False
