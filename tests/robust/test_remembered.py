"""What is remembered for clients is bounded by how large they made it."""

from __future__ import annotations

import sys
from typing import Any

from instar.apply import entries, fieldset
from instar.remembered import Remembered
from instar.schema.parse import structural
from instar.schema.validations import compile as compiling


def test_what_weighs_too_much_together_goes_oldest_first() -> None:
    memory: Remembered[str, int] = Remembered(10)
    memory.put("a", 1, 4)
    memory.put("b", 2, 4)
    memory.get("a")

    memory.put("c", 3, 4)

    assert [memory.get(key) for key in "abc"] == [1, None, 3]


def test_what_weighs_too_much_alone_is_not_kept_and_costs_nobody_a_place() -> None:
    memory: Remembered[str, int] = Remembered(10)
    memory.put("a", 1, 4)

    assert memory.put("huge", 2, 11) == 2

    assert [memory.get(key) for key in ("a", "huge")] == [1, None]


def test_rules_on_large_types_are_not_kept_by_their_number() -> None:
    def schema(number: int) -> dict[str, Any]:
        fields = {f"f{number}x{at}": {"type": "string"} for at in range(2000)}
        rules = [{"rule": "size(self) >= 0"}]
        return {"type": "object", "properties": fields, "x-kubernetes-validations": rules}

    for number in range(150):
        assert compiling.build(structural(schema(number)), root=False) is not None

    assert 100_000 < compiling._COMPILED.weight <= compiling._REMEMBERED
    assert 100_000 < compiling._DECLARED.weight <= compiling._REMEMBERED


def test_long_spellings_are_not_kept() -> None:
    before = fieldset._known_spelling.cache_info().currsize
    long = "x" * 100_000
    assert fieldset.value_element(long) == f'v:"{long}"'
    assert fieldset.parse({f'v:"{long}"': {}}) == {f'v:"{long}"': fieldset.LEAF}
    assert fieldset._known_spelling.cache_info().currsize == before


def test_large_sets_of_fields_are_not_kept() -> None:
    before = entries._parsed_text.cache_info().currsize
    raw: dict[str, Any] = {f"f:{at}": {} for at in range(10_000)}
    assert sys.getsizeof(entries._parsed(raw)) > 0
    assert entries._parsed_text.cache_info().currsize == before
