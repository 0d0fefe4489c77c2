"""Dataclasses of ours behave as the standard library's do, and nobody makes the slow ones."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from instar.base.fast_dataclass import dataclass

ROOT = Path(__file__).resolve().parents[2]
Maker = Callable[..., Callable[[type], Any]]
MAKERS = [pytest.param(dataclass, id="ours"), pytest.param(dataclasses.dataclass, id="theirs")]


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Named(Point):
    name: str = ""


@dataclass
class Plain:
    """Said by its author."""

    x: int
    seen: int = field(default=0, compare=False, repr=False)


def test_only_the_quick_ones_are_made() -> None:
    slow = [
        str(file.relative_to(ROOT))
        for file in (ROOT / "instar").rglob("*.py")
        for line in file.read_text().splitlines()
        if line.startswith("from dataclasses import") and "dataclass" in line.split("import")[1]
    ]

    assert slow == [], "import it from instar.base.fast_dataclass"


def test_values_come_by_place_by_name_and_by_default() -> None:
    assert [Point(1), Point(1, 2), Point(y=2, x=1)] == [Point(x=1)] * 3
    assert Point(1).tags is not Point(1).tags


@pytest.mark.parametrize("given", [{}, {"x": 1, "z": 2}])
def test_missing_or_unknown_arguments_are_a_type_error(given: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Point(**given)  # type: ignore[arg-type]


def test_frozen_records_cannot_be_changed() -> None:
    point = Point(1)

    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    assert point.x == 1


def test_they_can_be_copied_sent_and_changed_for_another() -> None:
    point = Named(1, 3, ["a"], "p")

    assert copy.copy(point) == point
    assert copy.deepcopy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point
    assert dataclasses.replace(point, name="q") == Named(1, 3, ["a"], "q")
    assert dataclasses.astuple(point) == (1, 3, ["a"], "p")


def test_they_are_shown_by_their_fields() -> None:
    assert repr(Named(1, name="p")) == "Named(x=1, y=2, tags=[], name='p')"
    assert repr(Plain(1, 2)) == "Plain(x=1)"
    assert Plain.__doc__ == "Said by its author."


def test_one_that_holds_itself_can_be_shown() -> None:
    point = Point(1, tags=[])
    point.tags.append(point)  # type: ignore[arg-type]

    assert repr(point) == "Point(x=1, y=2, tags=[...])"


@pytest.mark.parametrize("make", MAKERS)
def test_equality_and_hashes_are_those_of_the_fields(make: Maker) -> None:
    frozen = make(frozen=True, slots=True)(_fresh())
    loose = make()(_fresh())
    identical = make(eq=False, frozen=True)(_fresh())

    assert frozen(1) == frozen(1) != frozen(2)
    assert frozen(1) != loose(1)
    assert len({frozen(1), frozen(1), frozen(2)}) == 2
    assert loose.__hash__ is None
    assert loose(1) == loose(1)
    assert identical(1) != identical(1)
    assert len({identical(1), identical(1)}) == 2


@pytest.mark.parametrize("make", MAKERS)
def test_methods_that_a_class_defines_are_kept(make: Maker) -> None:
    class Own:
        __annotations__ = {"x": "int"}

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        def __post_init__(self) -> None:
            seen.append(self)

    seen: list[object] = []
    made = make(frozen=True)(Own)

    assert repr(made(1)) == "mine"
    assert made(1) == made(2)
    assert hash(made(1)) == hash(made(1)) != hash(made(2))
    assert len(seen) >= 5


@pytest.mark.parametrize("make", MAKERS)
def test_fields_without_a_parameter_and_by_name_only(make: Maker) -> None:
    class Counted:
        log: list[int] = field(init=False, default_factory=list)
        x: int
        y: int = field(default=5, kw_only=True)

        @cached_property
        def twice(self) -> int:
            return 2 * self.x

    made = make()(Counted)

    assert (made(1).log, made(1, y=6).y, made(3).twice) == ([], 6, 6)
    with pytest.raises(TypeError):
        made(1, 2)


@pytest.mark.parametrize("make", MAKERS)
def test_order_and_no_fields_at_all(make: Maker) -> None:
    ordered = make(order=True, frozen=True)(_fresh())
    empty = make(frozen=True, slots=True)(type("Empty", (), {}))

    assert ordered(1) < ordered(2)
    assert empty() == empty()
    assert hash(empty()) == hash(empty())
    assert repr(empty()) == "Empty()"


def _fresh() -> type:
    return type("Fresh", (), {"__annotations__": {"x": "int"}})
