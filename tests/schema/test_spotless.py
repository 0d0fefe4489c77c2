"""A check that found nothing is not made again; what it found is found each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.kube.schema.clean_cache import cache_clean


def test_only_nothing_is_remembered_and_each_gets_its_own() -> None:
    looked: list[Mapping[str, Any]] = []

    @cache_clean
    def check(schema: Mapping[str, Any], path: str) -> list[str]:
        looked.append(schema)
        return [path] if schema.get("bad") else []

    first, second = check({"a": 1}, "x"), check({"a": 1}, "y")
    first.append("mine")

    assert second == []
    assert check({"bad": True}, "x") == ["x"]
    assert check({"bad": True}, "y") == ["y"]
    assert check({"a": 1.0}, "z") == []
    assert len(looked) == 4


def test_a_schema_without_a_cache_key_is_checked_each_time() -> None:
    looked: list[int] = []

    @cache_clean
    def check(schema: Mapping[str, Any]) -> list[str]:
        looked.append(1)
        return []

    check({"maximum": 1 << 70})
    check({"maximum": 1 << 70})

    assert len(looked) == 2
