"""Paths that instar serves and no other API server does, as the pages themselves tell them."""

from __future__ import annotations

import importlib
import pkgutil

from docsite.markdown import code, sentence, table
from instar.server import endpoints


def own_paths() -> dict[str, str]:
    """A module of ``instar/server/endpoints`` that serves some has a ``PATHS``."""
    found: dict[str, str] = {}
    for module in pkgutil.walk_packages(endpoints.__path__, f"{endpoints.__name__}."):
        found |= getattr(importlib.import_module(module.name), "PATHS", {})
    return dict(sorted(found.items()))


def paths() -> str:
    rows = ((code(path), sentence(text)) for path, text in own_paths().items())
    return table(("path", "what is there"), rows)
