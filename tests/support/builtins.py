"""The recorded facts about built-in kinds, where they are at hand beside the checkout."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.shared import SHARED, needs_shared

BUILTINS = SHARED / "data" / "builtins"
needs_builtins = needs_shared(BUILTINS)

Line = dict[str, Any]


def recorded(name: str, wanted: Callable[[Line], bool] = lambda line: True) -> list[Any]:
    """The lines of ``<name>.jsonl`` as parameters of a test, each under its id."""
    if not BUILTINS.is_dir():
        return [pytest.param({}, marks=needs_builtins)]
    with (BUILTINS / f"{name}.jsonl").open() as file:
        lines = [json.loads(line) for line in file]
    return [pytest.param(line, id=line["id"]) for line in lines if wanted(line)]
