"""Checks whether a converter gives the same answer for the same object, whatever happened before.

``search.py`` calls this outside hypothesis, which seeds Python's random numbers and so makes
``random`` look deterministic. Objects are converted in order, again in reverse order, and, where
the converter can be imported, in a second process (``second_process.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json
from instar.tools.sdk.checking.case import ConversionRejected
from instar.tools.sdk.checking.differences import differences
from instar.tools.sdk.checking.laws import VersionPair
from instar.tools.sdk.checking.report import Counterexample
from instar.tools.sdk.checking.second_process import (
    REFUSED,
    NoSecondProcess,
    Question,
    convert_elsewhere,
)

_MOST_OBJECTS = 80


@dataclass(frozen=True, slots=True)
class DeterminismResult:
    """Whether conversions gave the same result in another order and process."""

    tested: int
    counterexample: Counterexample | None = None
    note: str = ""


def judge_determinism(
    pairs: Sequence[tuple[VersionPair, Sequence[Object]]], importable: str = ""
) -> list[DeterminismResult]:
    """Return one result per direction. ``importable`` is the name by which a second process imports
    the converter.
    """
    chosen = [(pair, _some(objects)) for pair, objects in pairs]
    first = [[_answer(pair, obj) for obj in objects] for pair, objects in chosen]
    again = [[_answer(pair, obj) for obj in reversed(objects)][::-1] for pair, objects in chosen]
    elsewhere, note = _elsewhere(chosen, importable)
    found = []
    for place, (_, objects) in enumerate(chosen):
        example = _compared(objects, first[place], again[place], "later")
        if example is None and elsewhere is not None:
            caption = "in another process"
            example = _compared(objects, first[place], elsewhere[place], caption)
        found.append(DeterminismResult(len(objects), example, "" if example else note))
    return found


def _some(objects: Sequence[Object]) -> list[Object]:
    """Return a sample of objects from the whole range, not only the first ones."""
    step = max(len(objects) // _MOST_OBJECTS, 1)
    return list(objects[::step][:_MOST_OBJECTS])


def _answer(pair: VersionPair, obj: Object) -> Any:
    try:
        [answer] = pair.case.raw([obj], pair.target)
    except ConversionRejected:
        return REFUSED
    except ValueError:  # not one answer: the contract law reports it
        return None
    return copy_json(answer)


def _elsewhere(
    chosen: Sequence[tuple[VersionPair, Sequence[Object]]], importable: str
) -> tuple[list[list[Any]] | None, str]:
    if not importable:
        return None, ""
    questions: list[Question] = [
        (obj, pair.target.api_version) for pair, objects in chosen for obj in objects
    ]
    try:
        answers = iter(convert_elsewhere(importable, questions))
    except NoSecondProcess as error:
        return None, f"not tried in a second process: {error}"
    return [[next(answers) for _ in objects] for _, objects in chosen], ""


def _compared(
    objects: Sequence[Object], first: Sequence[Any], second: Sequence[Any], when: str
) -> Counterexample | None:
    """Return the smallest object whose two results differ."""
    differing = []
    for obj, one, other in zip(objects, first, second, strict=True):
        found = list(differences(one, other))
        if found:
            differing.append((len(str(obj)), obj, one, other, found))
    if not differing:
        return None
    _, obj, one, other, found = min(differing, key=lambda each: each[0])
    return Counterexample(
        f"the same object converts differently {when}",
        [obj],
        [("object", obj), ("first", one), (when, other)],
        [str(each) for each in found],
    )
