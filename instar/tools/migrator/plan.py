"""What a run would do and what it would cost, as one value to show before anything is written."""

from __future__ import annotations

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.migrator.census.version_census import StoredVersionCensus
from instar.tools.migrator.live_crd import LiveCrd


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found out about the cluster."""

    server: str
    is_instar: bool
    objects: int | None
    census: StoredVersionCensus | None
    missing_permissions: tuple[str, ...]
    version_trouble: dict[str, str]
    """Served versions that do not work now, and why: no write would get through."""
    warnings: tuple[str, ...]
    seconds_per_write: float | None
    """Measured by concurrent dry runs; None when there is no object to try."""
    seconds_per_read: float = 0.0
    """What listing costs per object, all served versions together."""


@dataclass(frozen=True, slots=True)
class Plan:
    live: LiveCrd
    facts: Facts
    concurrency: int
    qps: float
    forced: bool
    """Rewrite although storedVersions says all is well."""
    settle: float = 0.0
    """Seconds to wait first, until every API server knows the CRD's last change."""
    verify: bool = True

    @property
    def needed(self) -> bool:
        return bool(self.live.old_versions) or self.forced

    @property
    def obstacles(self) -> list[str]:
        """Why a run must not start."""
        found = []
        crd = self.live.crd
        if not crd.is_true("Established"):
            found.append("the CRD is not established")
        if crd.deleting:
            found.append("the CRD is being deleted")
        found += [f"missing permission: {item}" for item in self.facts.missing_permissions]
        found += [
            f"{version} cannot be used: {why}"
            for version, why in self.facts.version_trouble.items()
        ]
        return found

    @property
    def seconds(self) -> float | None:
        """Expected time of everything: settling, listing twice, writing; or what --qps allows."""
        count, each = self.facts.objects, self.facts.seconds_per_write
        if count is None or each is None:
            return None
        reading = self.facts.seconds_per_read * (2 if self.verify else 1)
        return self.settle + max(count * (each + reading), count / self.qps if self.qps else 0.0)

    def to_json(self) -> Object:
        crd = self.live.crd
        return {
            "crd": crd.name,
            "server": self.facts.server,
            "generation": crd.generation,
            "servedVersions": crd.served(),
            "storageVersion": self.live.storage,
            "storedVersions": list(crd.stored_versions),
            "conversion": crd.conversion.strategy,
            "objects": self.facts.objects,
            "census": None if self.facts.census is None else self.facts.census.to_json(),
            "needed": self.needed,
            "obstacles": self.obstacles,
            "warnings": list(self.facts.warnings),
            "expectedSeconds": self.seconds,
        }

    def lines(self) -> list[str]:
        crd, facts = self.live.crd, self.facts
        lines = [
            f"{crd.name} on {facts.server}",
            f"  served {', '.join(crd.served())}; storage version {self.live.storage}; "
            f"storedVersions {', '.join(crd.stored_versions)}; "
            f"conversion {crd.conversion.strategy}",
            f"  objects: {'unknown' if facts.objects is None else facts.objects}",
        ]
        if facts.census is not None:
            shown = ", ".join(
                f"{facts.census.shown(version)} at {version}" for version in crd.stored_versions
            )
            lines.append(f"  stored: {shown} ({facts.census.how})")
        if self.seconds is not None and self.needed:
            lines.append(
                f"  expected time: about {human(self.seconds)} ({self.concurrency} at a time"
                f"{f', {human(self.settle)} of them to settle' if self.settle else ''})"
            )
        lines += [f"  warning: {text}" for text in facts.warnings]
        lines += [f"  cannot start: {text}" for text in self.obstacles]
        if not self.needed:
            lines.append("  nothing to do: every object is stored at the storage version")
        return lines


def human(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
