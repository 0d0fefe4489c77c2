"""State of one move: options, clients, journal, reports.

``preparation.py`` makes it for ``adopt.py`` and ``return_group.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.adopter.adoption_client import AdoptionClient
from instar.tools.adopter.cluster import MovedCluster
from instar.tools.adopter.journal import MoveJournal
from instar.tools.adopter.moved_group import MovedGroup

Tell = Callable[[str], None]
IN_FLIGHT_SECONDS = 1.0
"""How long a write that passed the policy before it was enforced may take to be stored."""


@dataclass(frozen=True)
class MoveOptions:
    """What the flags of ``instar adopt`` choose."""

    in_flight: float | None = None
    """Seconds to wait for writes in flight; None: as long as a validating webhook may take."""
    margin: int = 1_000
    """How far revisions of instar begin above the main cluster's."""
    discard: bool = False
    accept_new_uids: bool = False
    add_versions: tuple[str, ...] = ()
    """Versions to route to instar that the CRDs of an adopted group do not serve yet."""
    etcd: str = ""
    """URL of the main cluster's etcd."""


@dataclass
class GroupMove:
    """One run of the tool."""

    cluster: MovedCluster
    group: MovedGroup
    adoption: AdoptionClient
    route: Object
    """The APIService of instar's own API: its Service is where the group goes."""
    journal: MoveJournal
    options: MoveOptions
    tell: Tell
    in_flight: float = IN_FLIGHT_SECONDS
    figures: dict[str, object] = field(default_factory=dict)
    _frozen_at: float = 0.0

    def done(self, step: str, text: str = "", **facts: object) -> None:
        """Journal a step, then tell it."""
        self.journal.note(step, text, **facts)
        self.tell(f"{step}: {text}" if text else step)

    def frozen(self) -> None:
        """Start the clock of the freeze."""
        self._frozen_at = time.monotonic()

    def unfrozen(self) -> None:
        """Record how long writes were refused."""
        if self._frozen_at:
            self.figures["frozenSeconds"] = round(time.monotonic() - self._frozen_at, 2)
