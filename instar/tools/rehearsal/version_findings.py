"""Findings about one version of a CRD after a step, and the reference they are compared with.

``version_checks.py`` fills them, ``client_replay.py`` reads them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from instar.base.fast_dataclass import dataclass
from instar.tools.rehearsal.model import DamageFact, Exchange
from instar.tools.rehearsal.object_diff import content_digest
from instar.tools.rehearsal.sandbox import Sandbox

BEFORE = "the state before the upgrade"
NO_CONVERTER = "conversion was not judged: the CRD has a webhook, and none was given"


@dataclass
class VersionFindings:
    """All findings about one version after one step."""

    version: str
    judged: int = 0
    readings: list[DamageFact] = field(default_factory=list)
    """Damage seen when reading."""
    writes: list[DamageFact] = field(default_factory=list)
    """Damage seen when writing."""
    unknown: Counter[str] = field(default_factory=Counter)
    before: set[str] = field(default_factory=set)
    """Number of objects that were unreadable or refused before the upgrade."""
    list_failed: Exchange | None = None
    warnings: tuple[str, ...] = ()
    since: str = ""
    """The step after which they were found."""

    @property
    def harms(self) -> list[DamageFact]:
        return [*self.readings, *self.writes]


class ReferenceReadings:
    """Reference for comparisons: readings and responses of the state before a release."""

    def __init__(self, stage: Sandbox) -> None:
        self.stage = stage
        self.marks: dict[str, dict[str, bytes]] = {}
        """Digests by version and key; an object that cannot be read has none."""
        self.warnings: dict[str, tuple[str, ...]] = {}
        self.home: dict[str, str] = {}
        """The stored version of each object."""

    async def learn(self) -> None:
        for version in self.stage.crd.served():
            marks = self.marks.setdefault(version, {})
            async for listed in self.stage.pages(version):
                self.warnings[version] = listed.warnings
                for reading in listed.readings:
                    if reading.obj is not None:
                        marks[reading.key] = content_digest(reading.obj)

    def knows(self, version: str) -> bool:
        return version in self.marks

    def other_version(self, key: str) -> str:
        """Return a version at which the object can be read, its stored version first."""
        home = self.home.get(key, "")
        served = [home, *self.marks] if home in self.marks else list(self.marks)
        return next((version for version in served if key in self.marks[version]), "")
