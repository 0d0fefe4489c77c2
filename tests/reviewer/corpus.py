"""Neighbouring releases of real CRDs, where the corpus is at hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from instar.kube.api.crd import is_crd
from instar.kube.api.encoding.manifests import documents
from tests.support.corpus import CORPUS


class Neighbours(NamedTuple):
    name: str
    old: Path
    new: Path


def neighbours() -> list[Neighbours]:
    """Each pair of successive releases of each project."""
    found = []
    projects = sorted(item for item in CORPUS.glob("*") if item.is_dir())
    for project in projects:
        releases = sorted((item for item in project.iterdir() if item.is_dir()), key=_order)
        for old, new in pairwise(releases):
            found.append(Neighbours(f"{project.name} {old.name} {new.name}", old, new))
    return found


def _order(release: Path) -> list[int]:
    return [int(part) for part in release.name.lstrip("v").split(".")]


def crds(release: Path) -> dict[str, dict[str, Any]]:
    """By name; where a release ships a CRD in both API versions, the newer form."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(release.glob("*.yaml")):
        for document in documents(file.read_text(), str(file)):
            crd = document.value
            if is_crd(crd):
                name = crd["metadata"]["name"]
                if name not in found or crd["apiVersion"].endswith("/v1"):
                    found[name] = crd
    return found
