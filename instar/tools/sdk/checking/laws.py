"""The laws of conversion, each a function that takes objects and raises ``LawBroken``.

``search.py`` and ``live.py`` run them. A law gets objects as an API server has them, through
``CheckCase``; the objects are generated, live or from a saved counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Literal

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json
from instar.tools.sdk.checking.case import (
    CheckCase,
    ContractBroken,
    ConversionRejected,
    VersionSchema,
)
from instar.tools.sdk.checking.differences import (
    Difference,
    content,
    differences,
    extra_content,
    object_differences,
    undeclared_differences,
)

DETERMINISTIC = "deterministic"
Input = Literal["source", "target", "part"]
"""An object at the source version, at the target version, or a part of the first one."""


class Inapplicable(Exception):
    """This input does not test this law; another law reports its problem."""


class LawBroken(Exception):
    """A counterexample. ``steps`` are the intermediate objects, each with a caption."""

    def __init__(
        self,
        message: str,
        steps: Sequence[tuple[str, Any]],
        found: Sequence[Difference | str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.steps = list(steps)
        self.found = [str(item) for item in found]


@dataclass(frozen=True, slots=True)
class VersionPair:
    """One direction of a case."""

    case: CheckCase
    source: VersionSchema
    target: VersionSchema


@dataclass(frozen=True, slots=True)
class Law:
    """A law: its name, its explanation and the function that checks it."""

    name: str
    title: str
    check: Callable[[VersionPair, Sequence[Object]], None]
    inputs: tuple[Input, ...] = field(default=("source",))


def _view(pair: VersionPair, obj: Object, to: VersionSchema) -> Object:
    try:
        return pair.case.view(obj, to)
    except (ConversionRejected, ContractBroken) as error:
        raise Inapplicable from error


def total(pair: VersionPair, inputs: Sequence[Object]) -> None:
    """Every object can be converted."""
    try:
        pair.case.raw(inputs, pair.target)
    except ConversionRejected as error:
        raise LawBroken(f"a valid object is refused: {error}", [("object", inputs[0])]) from None


def keeps_contract(pair: VersionPair, inputs: Sequence[Object]) -> None:
    """Converted objects keep identity and metadata, as an API server requires."""
    try:
        answer = pair.case.raw(inputs, pair.target)
    except ConversionRejected as error:
        raise Inapplicable from error
    steps = [("object", inputs[0]), (f"answer at {pair.target.name}", answer)]
    try:
        [result] = pair.case.convert_all(inputs, pair.target)
    except ContractBroken as error:
        raise LawBroken(f"an API server refuses the answer: {error}", steps) from None
    before, after = ({"metadata": obj["metadata"]} for obj in (inputs[0], result))
    found = object_differences(before, after)
    if found:
        raise LawBroken("labels or annotations of the object are lost", steps, found)


LABELS = {
    "app": "x",
    "app.kubernetes.io/name": "widget",
    "app.kubernetes.io/managed-by": "Helm",
    "team": "",
    "example.com/tier-1": "a" * 63,
}
ANNOTATIONS = {
    "kubectl.kubernetes.io/last-applied-configuration": '{"spec":{"a":1}}\n',
    "meta.helm.sh/release-name": "prod",
    "argocd.argoproj.io/sync-wave": "-1",
    "note": "üñí\n" * 20,
    "example.com/empty": "",
}
"""Fields in objects that the author of a converter did not think of."""


def keeps_labels(pair: VersionPair, inputs: Sequence[Object]) -> None:
    """A conversion there and back keeps labels and annotations of every kind."""
    metadata = inputs[0]["metadata"]
    labels = {**(metadata.get("labels") or {}), **LABELS}
    annotations = {**(metadata.get("annotations") or {}), **ANNOTATIONS}
    obj = {**inputs[0], "metadata": {**metadata, "labels": labels, "annotations": annotations}}
    try:
        there = pair.case.convert(obj, pair.target)
        back = pair.case.convert(there, pair.source)
    except (ConversionRejected, ContractBroken) as error:
        raise Inapplicable from error
    before = {"metadata": obj["metadata"]}
    for name, result in ((pair.target.name, there), (pair.source.name, back)):
        found = object_differences(before, {"metadata": result["metadata"]})
        if found:
            steps = [("object", obj), (f"at {name}", result)]
            raise LawBroken(f"labels or annotations are lost or changed at {name}", steps, found)


def fits_schema(pair: VersionPair, inputs: Sequence[Object]) -> None:
    """A converted valid object is valid in the other version."""
    try:
        result = pair.case.convert(inputs[0], pair.target)
    except (ConversionRejected, ContractBroken) as error:
        raise Inapplicable from error
    steps = [("object", inputs[0]), (f"converted to {pair.target.name}", result)]
    dropped = pair.target.prune(copy_json(result))
    if dropped:
        raise LawBroken(
            f"the result has fields {pair.target.name} does not know; they would be pruned",
            steps,
            [f"pruned   {path}" for path in dropped],
        )
    problems = pair.target.problems(result)
    if problems:
        raise LawBroken(f"the result is not valid at {pair.target.name}", steps, problems)


def round_trip(pair: VersionPair, inputs: Sequence[Object]) -> None:
    """Converting there and back restores the object."""
    there = _view(pair, inputs[0], pair.target)
    try:
        back = pair.case.view(there, pair.source)
    except ConversionRejected as error:
        raise LawBroken(
            f"{pair.source.name} → {pair.target.name} works, the way back is refused: {error}",
            [("object", inputs[0]), (f"at {pair.target.name}", there)],
        ) from None
    except ContractBroken as error:
        raise Inapplicable from error
    found = undeclared_differences(object_differences(inputs[0], back), pair.source.losses)
    if found:
        raise LawBroken(
            f"{pair.source.name} → {pair.target.name} → {pair.source.name} is not the same object",
            [
                ("object", inputs[0]),
                (f"at {pair.target.name}", there),
                (f"back at {pair.source.name}", back),
            ],
            found,
        )


def edits_win(pair: VersionPair, inputs: Sequence[Object]) -> None:
    """A kept value must not undo a later edit, in either version."""
    original, edit, second_edit = inputs
    # An edit that would not survive on its own is the business of the round trip.
    _survives_alone(pair, edit, pair.target, pair.source)
    _survives_alone(pair, second_edit, pair.source, pair.target)
    there = _view(pair, original, pair.target)
    edited = {**content(edit), **_frame(there)}
    back = _view(pair, edited, pair.source)
    steps = [
        (f"object at {pair.source.name}", original),
        (f"seen and edited at {pair.target.name}", edited),
        (f"converted to {pair.source.name}", back),
    ]
    _expect(pair, edited, back, pair.target, steps)
    edited_again = {**content(second_edit), **_frame(back)}
    if pair.source.problems(edited_again):
        raise Inapplicable
    there_again = _view(pair, edited_again, pair.target)
    steps += [
        (f"edited again at {pair.source.name}", edited_again),
        (f"converted to {pair.target.name}", there_again),
    ]
    _expect(pair, edited_again, there_again, pair.source, steps)


def _survives_alone(pair: VersionPair, obj: Object, at: VersionSchema, via: VersionSchema) -> None:
    back = _view(pair, _view(pair, obj, via), at)
    if undeclared_differences(differences(content(obj), content(back)), at.losses):
        raise Inapplicable


def _expect(
    pair: VersionPair,
    edited: Object,
    converted: Object,
    version: VersionSchema,
    steps: list[tuple[str, Any]],
) -> None:
    result = _view(pair, converted, version)
    found = differences(content(edited), content(result))
    remaining = undeclared_differences(found, version.losses)
    if remaining:
        raise LawBroken(
            f"an edit made in {version.name} does not survive",
            [*steps, (f"and back at {version.name}", result)],
            remaining,
        )


def deterministic(pair: VersionPair, inputs: Sequence[Object]) -> None:
    """Converting twice gives the same result."""
    try:
        first, second = (pair.case.raw(inputs, pair.target) for _ in range(2))
    except ConversionRejected as error:
        raise Inapplicable from error
    found = list(differences(first, second))
    if found:
        raise LawBroken(
            "the same object converts differently each time",
            [("object", inputs[0]), ("first", first[0]), ("second", second[0])],
            found,
        )


def like_items(pair: VersionPair, inputs: Sequence[Object]) -> None:
    objects = [_renamed(obj, index) for index, obj in enumerate(inputs)]
    try:
        single = [pair.case.raw([obj], pair.target)[0] for obj in objects]
        together = pair.case.raw(objects, pair.target)
    except (ConversionRejected, IndexError) as error:
        raise Inapplicable from error
    found = list(differences(single, together))
    if found:
        raise LawBroken(
            "a list converts differently from its items",
            [("objects", objects), ("one by one", single), ("as a list", together)],
            found,
        )


def parts_stay_parts(pair: VersionPair, inputs: Sequence[Object]) -> None:
    """Server-side apply converts partial objects: the converter must not crash or add fields."""
    whole, part = inputs
    full = _view(pair, whole, pair.target)
    try:
        result = pair.case.convert(part, pair.target)
    except ConversionRejected as error:
        raise LawBroken(
            f"a part of an object is refused: {error}", [("object", whole), ("its part", part)]
        ) from None
    except ContractBroken as error:
        raise Inapplicable from error
    seen: Object = copy_json(result)
    pair.target.prune(seen)
    found = list(extra_content(content(seen), content(full)))
    if found:
        raise LawBroken(
            "a part of an object gains what the object does not have",
            [
                ("object", whole),
                ("its part", part),
                (f"the object at {pair.target.name}", full),
                (f"the part at {pair.target.name}", seen),
            ],
            found,
        )


LAWS: tuple[Law, ...] = (
    Law("total", "every valid object converts", total),
    Law("contract", "metadata is kept as an API server demands", keeps_contract),
    Law("labels", "labels and annotations of every kind survive, both ways", keeps_labels),
    Law("schema", "the result is valid, and nothing of it is pruned", fits_schema),
    Law("round-trip", "there and back loses nothing", round_trip),
    Law("edit", "an edit made in one version survives", edits_win, ("source", "target", "source")),
    Law("partial", "a part of an object converts to a part", parts_stay_parts, ("source", "part")),
    Law("list", "a list converts like its items", like_items, ("source", "source", "source")),
    Law(DETERMINISTIC, "the same object always converts alike", deterministic),
)


def law_named(name: str) -> Law:
    for law in LAWS:
        if law.name == name:
            return law
    raise ValueError(f"no law {name!r}; there is {', '.join(law.name for law in LAWS)}")


def _frame(obj: Object) -> Object:
    return {name: obj[name] for name in ("apiVersion", "kind", "metadata")}


def _renamed(obj: Object, index: int) -> Object:
    metadata = {**obj["metadata"], "name": f"item-{index}", "uid": f"uid-{index}"}
    return {**obj, "metadata": metadata}
