"""Tries to roll back to the state before the upgrade, on a copy of the sandbox after a step.

``batch.py`` calls it after each step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from instar.base.json_values import Object, same_json
from instar.tools.rehearsal.converting import ConversionMode
from instar.tools.rehearsal.model import MOST_EXAMPLES, DamageFact, Damages, Way, WayBack
from instar.tools.rehearsal.object_diff import content_digest, diff, differences, summary
from instar.tools.rehearsal.sandbox import Sandbox
from instar.tools.rehearsal.version_findings import NO_CONVERTER, ReferenceReadings
from instar.tools.reviewer.report import Damage
from instar.tools.upgrader.transition_crds import way_back

_MOST_FIELDS = 12


async def try_rollback(stage: Sandbox, origin: ReferenceReadings, *, rewritten: bool) -> WayBack:
    """Roll back and return the result. ``rewritten``: whether objects were written since the
    beginning; if not, the old CRD reads the same bytes as before.
    """
    old = origin.stage.document
    back = WayBack(new_fields=new_fields(old, stage.document), objects=len(stage.keys))
    if same_json(old["spec"], stage.document["spec"]) and not rewritten:
        return back
    async with stage.copy() as copy:
        refused = await copy.apply_crd(old)
        if refused:
            bridged = way_back(old, copy.document)
            still = await copy.apply_crd(bridged)
            if still:
                back.way, back.why = Way.NONE, still
                return back
            back.way, back.why = Way.MIGRATION, refused
        if rewritten:
            await _compare(copy, origin, back)
    return back


async def _compare(copy: Sandbox, origin: ReferenceReadings, back: WayBack) -> None:
    harms: list[DamageFact] = []
    unread = 0
    for version in origin.marks:
        async for listed in copy.pages(version):
            for reading in listed.readings:
                before = origin.marks[version].get(reading.key)
                if before is None:
                    continue
                if reading.obj is None:
                    unread += copy.conversion is ConversionMode.ABSENT
                    text = f"cannot be read at {version}: {_answer(reading.problem)}"
                    harms.append(DamageFact(reading.key, version, Damage.UNREADABLE, text))
                elif content_digest(reading.obj) != before:
                    few = len(harms) < MOST_EXAMPLES
                    harms += await _harms(origin, version, reading.key, reading.obj, shown=few)
    if unread:
        back.way, back.why = Way.UNKNOWN, NO_CONVERTER
    elif harms:
        back.losses = Damages.of(harms)
        unreadable = any(harm.damage is Damage.UNREADABLE for harm in harms)
        back.way = Way.NONE if unreadable else Way.LOSSY
        back.why = harms[0].text


async def _harms(
    origin: ReferenceReadings, version: str, key: str, now: Object, *, shown: bool
) -> list[DamageFact]:
    reading = await origin.stage.read(version, key)
    if reading.obj is None:
        return []
    lines = diff(reading.obj, now) if shown else ()
    return [
        DamageFact(key, version, damage, f"at {version}, {summary(texts)}", None, lines)
        for damage, texts in differences(reading.obj, now).items()
    ]


def _answer(problem: Any) -> str:
    return "" if problem is None else str(problem.answer)


def new_fields(old: Object, new: Object) -> tuple[str, ...]:
    """Return fields of the new CRD that no version of the old one has. Pure."""
    known = {path for _, path in _fields(old)}
    found: dict[str, str] = {}
    below: set[str] = set()
    for version, path in _fields(new):
        if path in known or path in found:
            continue
        below.add(path)
        # a new branch is named once, not with every leaf; parents come first
        if _parent(path) not in below:
            found[path] = f"{path} ({version})"
    shown = list(found.values())
    more = len(shown) - _MOST_FIELDS
    return (*shown[:_MOST_FIELDS], *((f"and {more} more",) if more > 0 else ()))


def _parent(path: str) -> str:
    return path.rpartition(".")[0].removesuffix("[*]")


def _fields(crd: Object) -> Iterator[tuple[str, str]]:
    for version in crd["spec"]["versions"]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        for path in _paths(schema):
            yield version["name"], path


def _paths(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield every property, parents first; iteratively, because schemas may be deep."""
    todo: deque[tuple[str, Mapping[str, Any]]] = deque([("", schema)])
    while todo:
        path, node = todo.popleft()
        properties = node.get("properties")
        if isinstance(properties, dict):
            for name, child in properties.items():
                if path == "" and name in ("apiVersion", "kind", "metadata"):
                    continue
                place = f"{path}.{name}".lstrip(".")
                yield place
                if isinstance(child, dict):
                    todo.append((place, child))
        for name, sign in (("items", "[*]"), ("additionalProperties", "[*]")):
            child = node.get(name)
            if isinstance(child, dict):
                todo.append((f"{path}{sign}", child))
