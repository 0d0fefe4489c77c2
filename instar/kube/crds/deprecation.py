"""Warning header text for requests to a deprecated version of a custom resource.

Called by ``server/registry/resources/serving.py``.
"""

from __future__ import annotations

from instar.kube.api.crd import Crd
from instar.kube.api.names import by_priority, compare_versions


def deprecation_warning(crd: Crd, version: str) -> str | None:
    """Return the CRD's own text, or one that recommends the best version; None if not
    deprecated."""
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
