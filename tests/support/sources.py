"""Syntax trees of source files, for tests that read the source: a process parses each file once.

Parsing all of ``instar`` takes two seconds, and about thirty tests read it. The trees are shared,
so callers must not change them.
"""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def parsed(file: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    text = file.read_text(encoding="utf-8")
    was_enabled = gc.isenabled()
    gc.disable()  # a tree has no garbage, and the trees of before would be searched again and again
    try:
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()
