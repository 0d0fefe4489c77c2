"""Warnings about pods and pod templates, with upstream's texts.

Called by the strategies in ``pods.py``, ``sets.py`` and ``kinds/storage.py``.
"""

from __future__ import annotations

from instar.base.json_values import Object

_DEPRECATED_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}


def pod_name_advice(texts: list[str]) -> list[str]:
    """Return a warning if the pod name is not a DNS label; ``texts`` are the reasons."""
    if not texts:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising "
        f"behavior; a DNS label is recommended: [{' '.join(texts)}]"
    ]


def source_advice(source: Object, path: str) -> list[str]:
    """Return warnings about deprecated volume sources."""
    return [
        f"{path}.{name}: {_DEPRECATED_VOLUMES[name]}"
        for name in _DEPRECATED_VOLUMES
        if name in source
    ]


def volume_advice(spec: Object, path: str) -> list[str]:
    found: list[str] = []
    for position, volume in enumerate(spec.get("volumes") or ()):
        found += source_advice(volume, f"{path}.volumes[{position}]")
    for volume in spec.get("volumes") or ():
        projected = volume.get("projected")
        if projected is not None and any(not source for source in projected.get("sources") or ()):
            found.append(f'volume "{volume.get("name", "")}" (Projected) has no sources provided')
    return found
