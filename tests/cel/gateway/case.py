"""A row of the tables: an object written by hand and what its rules must say."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml


class Case(NamedTuple):
    """``expected`` is empty for a valid object, else exactly one error: its field and text."""

    name: str
    plural: str
    spec: dict[str, Any]
    expected: str = ""
    old: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


def valid(name: str, plural: str, spec: str) -> Case:
    return Case(name, plural, yaml.safe_load(spec))


def refused(name: str, plural: str, spec: str, field: str, text: str) -> Case:
    return Case(name, plural, yaml.safe_load(spec), f"{field}: Invalid value: {text}")
