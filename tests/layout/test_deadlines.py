"""asyncio's deadlines and task groups need a task, and a request may run without one.

Code that a request can reach uses ``taskless_wait.with_timeout``; code that uses asyncio's own is
listed with the reason why a task is sure to be there.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
NEED_A_TASK = {"timeout", "timeout_at", "wait_for", "TaskGroup"}

LISTED = {
    "instar/base/taskless_wait.py": "makes the task",
    "instar/cli/commands/completion.py": "a command",
    "instar/cli/serving/workers.py": "a command",
    "instar/wire/conversion/in_process.py": "makes a task for each call",
    "instar/wire/conversion/webhook.py": "batching.py makes a task for each call",
    "instar/wire/storage/postgres/server.py": "link.py makes a task for each connection",
    "instar/wire/webhooks/transport.py": "its callers make tasks: admission, batching.py, audit",
    "instar/server/registry/admission/webhooks/in_process_call.py": "call.py makes a task",
    "instar/server/registry/stored/packing/packer.py": "a kept task",
    "instar/tools/console/jobs/supervisor.py": "the process was waited for before",
    "instar/server/identity/oidc/trusted_issuers.py": "the task that watches the file",
    "instar/tools/migrator/rewrite_pass.py": "a run is a task",
    "instar/tools/rehearsal/sandbox.py": "a command",
    "instar/tools/restorer/restore_crd.py": "a command",
    "instar/tools/nodes/simulation.py": "a command",
    "instar/wire/rpc/channel.py": "connecting is a task",
    "instar/server/http/connections.py": "the task of the server's end",
    "instar/server/registry/controllers/manager_lease.py": "a kept task",
    "instar/server/aggregation/backends.py": "documents are fetched by keys of queues",
    "instar/wire/client/reflector.py": "its callers are commands and kept tasks",
    "instar/wire/client/review_client.py": "makes a task for each review",
    "instar/server/lifecycle/start_hooks.py": "the task of the start",
}


def test_deadlines_that_need_a_task_are_listed() -> None:
    found = {str(file.relative_to(ROOT)) for file in ROOT.glob("instar/**/*.py") if _uses(file)}

    assert found - LISTED.keys() == set(), (
        "use taskless_wait.with_timeout, or say why there is a task"
    )
    assert LISTED.keys() - found == set(), "listed in vain"


def _uses(file: Path) -> bool:
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "asyncio" and node.attr in NEED_A_TASK:
                return True
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            return True  # under another name it would not be seen
    return False
