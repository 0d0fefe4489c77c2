"""The warning a client of a deprecated version hears."""

from __future__ import annotations

from instar.kube.api.crd import Crd
from instar.kube.api.names import by_priority, compare_versions


def deprecation_warning(crd: Crd, version: str) -> str | None:
    """The author's own text, or one that names the best version to move up to, if any."""
    found = crd.version(version)
    if found is None or not found.deprecated:
        return None
    if found.deprecation_warning is not None:
        return found.deprecation_warning
    kind = crd.names.kind
    text = f"{crd.group}/{version} {kind} is deprecated"
    better = by_priority(
        item.name
        for item in crd.versions
        if item.served and not item.deprecated and compare_versions(item.name, version) > 0
    )
    return f"{text}; use {crd.group}/{better[0]} {kind}" if better else text
