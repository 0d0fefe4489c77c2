"""Compares two JSON values: where they differ, and whether one is part of the other.

Called by the modules of this package, by ``tools/suites/running.py`` and by the console's convert
view.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import same_json
from instar.tools.sdk.kept_values import canonical
from instar.tools.sdk.paths import MISSING, Each, join, parse_path
from instar.tools.sdk.ruleset import Loss

Step = str | int
PathSteps = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    path: PathSteps
    before: Any
    after: Any

    def __str__(self) -> str:
        where = show_path(self.path)
        if self.after is MISSING:
            return f"lost     {where} = {_short(self.before)}"
        if self.before is MISSING:
            return f"invented {where} = {_short(self.after)}"
        return f"changed  {where}: {_short(self.before)} → {_short(self.after)}"


def show_path(path: PathSteps) -> str:
    text = ""
    for step in path:
        text = f"{text}[{step}]" if isinstance(step, int) else join(text, (step,))
    return text or "(the object)"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}…"


def differences(before: Any, after: Any, path: PathSteps = ()) -> Iterator[Difference]:
    """Yield the smallest paths that differ; lists of different length differ as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            left, right = before.get(name, MISSING), after.get(name, MISSING)
            if left is MISSING or right is MISSING:
                yield Difference((*path, name), left, right)
            else:
                yield from differences(left, right, (*path, name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from differences(left, right, (*path, index))
    elif canonical(before) != canonical(after):
        yield Difference(path, before, after)


def extra_content(part: Any, whole: Any, path: PathSteps = ()) -> Iterator[Difference]:
    """Yield what ``part`` has and ``whole`` lacks or has with another value. List items match by
    content.
    """
    if isinstance(part, dict) and isinstance(whole, dict):
        for name, value in part.items():
            if name not in whole:
                yield Difference((*path, name), MISSING, value)
            else:
                yield from extra_content(value, whole[name], (*path, name))
    elif isinstance(part, list) and isinstance(whole, list):
        for index, item in enumerate(part):
            if not any(_fits(item, other) for other in whole):
                yield Difference((*path, index), MISSING, item)
    elif canonical(part) != canonical(whole):
        yield Difference(path, whole, part)


def _fits(part: Any, whole: Any) -> bool:
    return next(extra_content(part, whole), None) is None


def content(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that conversion itself sets."""
    return {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}


def object_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Yield the differences that users notice: content, labels, and annotations from before.

    Annotations added on the way are how converters keep what does not fit; they are no loss.
    """
    found = list(differences(content(before), content(after)))
    old, new = before.get("metadata") or {}, after.get("metadata") or {}
    found += differences(old.get("labels") or {}, new.get("labels") or {}, ("metadata", "labels"))
    kept = new.get("annotations") or {}
    for name, value in (old.get("annotations") or {}).items():
        if not same_json(kept.get(name, MISSING), value):
            path = ("metadata", "annotations", name)
            found.append(Difference(path, value, kept.get(name, MISSING)))
    return found


def undeclared_differences(found: Iterable[Difference], losses: Sequence[Loss]) -> list[Difference]:
    """Return the differences that no ``lossy`` declaration of this version covers."""
    patterns = []
    for loss in losses:
        parsed = parse_path(loss.path)
        patterns.append((*parsed.scope, *parsed.fields))
    return [
        difference
        for difference in found
        if not any(_under(difference.path, pattern) for pattern in patterns)
    ]


def _under(path: PathSteps, pattern: tuple[str | Each, ...]) -> bool:
    if len(path) < len(pattern):
        return False
    return all(
        isinstance(expected, Each) or step == expected
        for step, expected in zip(path, pattern, strict=False)
    )
