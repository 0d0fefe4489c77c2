"""``User-Agent`` names of instar's own tools.

The tools send them; the server's usage statistics (``server/registry/insight/usage.py``) ignore
requests of these tools, because reading every version does not mean that a client needs it.
"""

from __future__ import annotations

MIGRATE, VERSIONS, CONSOLE = "instar-migrate", "instar-versions", "instar-console"
SNAPSHOT = "instar-snapshot"
OURS = frozenset({"instar", MIGRATE, VERSIONS, CONSOLE, SNAPSHOT})
"""The names of all tools of instar."""


def is_ours(agent: str) -> bool:
    """Return whether the agent is one of instar's tools, such as ``instar-console/Mozilla/5.0
    …``."""
    return agent.partition("/")[0] in OURS
