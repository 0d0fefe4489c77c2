"""The plan of a migration: number of objects, obstacles, expected duration. Pure.

The commands make it from the results of ``preflight.py`` and print it before the first write.
"""

from __future__ import annotations

from instar.base.escaping import shell_word
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.migrator.census.version_census import StoredVersionCensus
from instar.tools.migrator.live_crd import LiveCrd
from instar.tools.migrator.rewrite_checks.rewrite_effect import fields_only_in, unaccepted_fields

_MAX_SHOWN_NAMES = 3
"""After this number of names a text ends with "and more"."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Results of ``preflight.py`` about the cluster."""

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
    """What a migration would do: the CRD, what was found out about it, and the pace."""

    live: LiveCrd
    facts: Facts
    concurrency: int
    qps: float
    forced: bool
    """Rewrite although storedVersions says all is well."""
    settle: float = 0.0
    """Seconds to wait first, until every API server knows the CRD's last change."""
    verify: bool = True
    trusting: bool = False
    """Believe a storedVersions that names the storage version alone."""
    accepted: tuple[str, ...] = ()
    """Paths whose change by a rewrite the user accepts."""

    @property
    def needed(self) -> bool:
        """Return whether objects may be stored at other versions. Only a count of the stored
        objects or a flag of the user rules it out.
        """
        if self.live.old_versions or self.forced:
            return True
        census = self.facts.census
        if census is not None and census.exact:
            return bool(census.stale(self.live.storage))
        return not self.trusting

    @property
    def unseen_fields(self) -> dict[str, list[str]]:
        """Return by version the fields that only a version has that is not served: whether objects
        contain them cannot be read, and a rewrite under conversion None would drop them.
        """
        crd, census = self.live.crd, self.facts.census
        written = crd.version(self.live.write_version)
        if crd.conversion.strategy != "None" or crd.preserve_unknown or written is None:
            return {}
        found = {}
        for version in crd.versions:
            if version.served or version.name == self.live.write_version:
                continue
            if census is not None and census.exact and not census.at_most(version.name):
                continue
            if self.trusting and version.name not in crd.stored_versions:
                continue
            fields = fields_only_in(version.schema, written.schema)
            if names := unaccepted_fields(fields, self.accepted):
                found[version.name] = names
        return found

    @property
    def obstacles(self) -> list[str]:
        """Return the reasons why a run must not start."""
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
        for version, names in self.unseen_fields.items():
            shown = ", ".join(names[:_MAX_SHOWN_NAMES]) + (
                " and more" if len(names) > _MAX_SHOWN_NAMES else ""
            )
            accepts = " ".join(f"--accept-change {name}" for name in names[:_MAX_SHOWN_NAMES])
            found.append(
                f"objects stored at {version} may hold {shown}, which {self.live.write_version} "
                f"would drop and no served version shows; serve {version}, so that they can be "
                f"compared (instar versions {shell_word(crd.name)} serve "
                f"{shell_word(version)}), or let them go: {accepts}"
            )
        return found

    @property
    def seconds(self) -> float | None:
        """Return the expected time of waiting, listing twice, proving and writing, or what --qps
        allows. With a webhook each object costs a dry run and a read per other served version.
        """
        count, each = self.facts.objects, self.facts.seconds_per_write
        if count is None or each is None:
            return None
        requests = 1
        if self.live.crd.conversion.strategy != "None":
            requests += 2 * (len(self.live.read_versions) - 1)
        reading = self.facts.seconds_per_read * (2 if self.verify else 1)
        paced = count * requests / self.qps if self.qps else 0.0
        return self.settle + max(count * (each * requests + reading), paced)

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
            exact = self.facts.census is not None and self.facts.census.exact
            why = (
                "every object is stored at the storage version"
                if exact
                else "storedVersions names the storage version alone, and is believed "
                "(--trust-stored-versions)"
            )
            lines.append(f"  nothing to do: {why}")
        return lines


def human(seconds: float) -> str:
    """Return a duration as people write it."""
    if seconds < 1:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
