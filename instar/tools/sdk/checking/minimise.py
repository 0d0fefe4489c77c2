"""Makes a counterexample smaller by leaving things out while it still is one.

Hypothesis shrinks choices, not objects, and live objects were never its choices; this works on
the objects themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from instar.base.json_values import Object
from instar.tools.sdk.checking.differences import PathSteps
from instar.tools.sdk.checking.laws import Inapplicable, Law, LawBroken, VersionPair
from instar.tools.sdk.checking.parts import removable, without

MOST_TRIES = 2000
_DECORATIONS = ("labels", "annotations", "generation", "finalizers", "managedFields")


def minimise(pair: VersionPair, law: Law, inputs: list[Object]) -> tuple[list[Object], LawBroken]:
    """The smaller inputs and what the law says about them."""
    broken = _judge(pair, law, inputs)
    if broken is None:
        raise ValueError("these inputs do not break the law")
    tries = 0
    shrinking = True
    while shrinking:
        shrinking = False
        for candidate in _smaller(pair, law, inputs):
            tries += 1
            if tries > MOST_TRIES:
                return inputs, broken
            found = _judge(pair, law, candidate) if _fit(pair, law, candidate) else None
            if found is not None:
                inputs, broken, shrinking = candidate, found, True
                break
    return inputs, broken


def _judge(pair: VersionPair, law: Law, inputs: Sequence[Object]) -> LawBroken | None:
    try:
        law.check(pair, inputs)
    except LawBroken as broken:
        return broken
    except Inapplicable:
        return None
    return None


def _smaller(pair: VersionPair, law: Law, inputs: list[Object]) -> Iterator[list[Object]]:
    for index, wanted in enumerate(law.inputs):
        if wanted == "part":
            continue
        version = pair.target if wanted == "target" else pair.source
        for field in removable(inputs[index], version.compiled.structural):
            yield _lacking(law, inputs, index, field)
        for name in _DECORATIONS:
            if name in inputs[index]["metadata"]:
                yield _lacking(law, inputs, index, ("metadata", name))


def _lacking(law: Law, inputs: list[Object], index: int, field: PathSteps) -> list[Object]:
    """A part shrinks with its whole, or it would be none any more."""
    return [
        without(obj, [field]) if at == index or law.inputs[at] == "part" else obj
        for at, obj in enumerate(inputs)
    ]


def _fit(pair: VersionPair, law: Law, inputs: Sequence[Object]) -> bool:
    for obj, wanted in zip(inputs, law.inputs, strict=True):
        version = pair.target if wanted == "target" else pair.source
        if wanted != "part" and version.problems(obj):
            return False
    return True
