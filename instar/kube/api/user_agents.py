"""What instar's own tools call themselves in ``User-Agent``: whoever merely looks at every version
needs none of them."""

from __future__ import annotations

MIGRATE, VERSIONS, CONSOLE = "instar-migrate", "instar-versions", "instar-console"
SNAPSHOT = "instar-snapshot"
OURS = frozenset({"instar", MIGRATE, VERSIONS, CONSOLE, SNAPSHOT})


def is_ours(agent: str) -> bool:
    """``instar-console/Mozilla/5.0 …`` is."""
    return agent.partition("/")[0] in OURS
