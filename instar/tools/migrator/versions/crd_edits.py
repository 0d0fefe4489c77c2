"""Edits a CRD's JSON or YAML tree in place, for ``instar versions`` and the console. Pure.

The callers first check with ``lifecycle.py`` that an edit is safe. The functions accept trees of
``ruamel.yaml`` as well as plain dicts, so that comments in files are preserved.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object


@dataclass(frozen=True, slots=True)
class VersionEdit:
    """Arguments of an edit."""

    version: str
    source: str = ""
    """Add: the version whose schema, columns and subresources are copied."""
    schema: Object | None = None
    """Add: another schema."""
    warning: str = ""
    """Deprecate: what clients are told."""


def add(crd: Object, wish: VersionEdit) -> None:
    versions = crd["spec"]["versions"]
    source = wish.source or next(item["name"] for item in versions if item.get("storage"))
    fresh = copy.deepcopy(_version(crd, source))
    for name in ("deprecated", "deprecationWarning"):
        fresh.pop(name, None)
    fresh["name"] = wish.version
    fresh["served"] = True
    fresh["storage"] = False
    if wish.schema is not None:
        fresh["schema"] = {"openAPIV3Schema": wish.schema}
    versions.append(fresh)


def serve(crd: Object, wish: VersionEdit) -> None:
    _version(crd, wish.version)["served"] = True


def deprecate(crd: Object, wish: VersionEdit) -> None:
    version = _version(crd, wish.version)
    version["deprecated"] = True
    if wish.warning:
        version["deprecationWarning"] = wish.warning


def storage(crd: Object, wish: VersionEdit) -> None:
    for version in crd["spec"]["versions"]:
        version["storage"] = version["name"] == wish.version


def unserve(crd: Object, wish: VersionEdit) -> None:
    _version(crd, wish.version)["served"] = False


def remove(crd: Object, wish: VersionEdit) -> None:
    versions = crd["spec"]["versions"]
    versions.remove(_version(crd, wish.version))


EDITS: dict[str, Callable[[Object, VersionEdit], None]] = {
    "add": add,
    "serve": serve,
    "deprecate": deprecate,
    "storage": storage,
    "unserve": unserve,
    "remove": remove,
}


def _version(crd: Object, name: str) -> Object:
    found: Object = next(item for item in crd["spec"]["versions"] if item["name"] == name)
    return found
