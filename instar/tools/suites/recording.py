"""Generates a first suite for a CRD (``instar test --write``): objects and the server's answers.

Called by ``cli/commands/test.py``. The recorded answers are the current behaviour; the user decides
whether it is intended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from instar.base.json_values import Object, copy_json
from instar.kube.api.crd import Crd
from instar.kube.crds.documents import read_definition
from instar.server.lifecycle.embedded import embedded
from instar.tools.reviewer.witnesses.samples import Samples
from instar.tools.suites.running import SuiteRunner

_MOST_CASES = 60
_COMMON_FIELDS = ("apiVersion", "kind", "metadata", "status")
_WRONG_VALUES: Mapping[str, Any] = {
    "string": 1,
    "integer": "one",
    "number": "one",
    "boolean": "yes",
    "array": {},
    "object": "text",
}


async def record_suite(given: Object, samples: list[Object]) -> str:
    """Return the text of a suite. Raises ``ValueError`` if a server rejects the CRD."""
    crd = read_definition(given).crd
    cases: list[Object] = []
    async with embedded() as api:
        runner = await SuiteRunner.install(api, given, converts=False)
        for number, (name, obj) in enumerate(_proposals(crd, samples)):
            refusal, shown = await runner.answer(obj, f"case-{number}")
            case: Object = {"name": name, "initial": _Block(_text(obj))}
            if refusal:
                case["expectedError"] = refusal
            else:
                case["expected"] = _Block(_text(shown))
            cases.append(case)
    return _written({"name": crd.names.kind, "crdName": crd.name, "tests": {"onCreate": cases}})


def _proposals(crd: Crd, samples: list[Object]) -> Iterator[tuple[str, Object]]:
    number = 0
    for sample in samples:
        yield f"takes the sample {(sample.get('metadata') or {}).get('name', '')}".rstrip(), sample
    for version in crd.versions:
        if not version.served or version.schema is None:
            continue
        base = _minimal(crd, version.name, version.schema)
        yield f"takes the least there is at {version.name}", base
        for name, changed in _broken(version.schema, base, ()):
            number += 1
            if number > _MOST_CASES:
                return
            yield f"{version.name}: {name}", changed


def _minimal(crd: Crd, version: str, schema: Mapping[str, Any]) -> Object:
    content = Samples().minimal(dict(schema))
    body = content if isinstance(content, dict) else {}
    head = {"apiVersion": f"{crd.group}/{version}", "kind": crd.names.kind}
    return {**head, **{name: value for name, value in body.items() if name not in _COMMON_FIELDS}}


def _broken(
    node: Mapping[str, Any], whole: Object, path: tuple[str, ...]
) -> Iterator[tuple[str, Object]]:
    """Yield minimal objects with one violation each, for every constraint."""
    for name, below in (node.get("properties") or {}).items():
        if not path and name in _COMMON_FIELDS:
            continue
        where = (*path, name)
        shown = ".".join(where)
        if below.get("type") in _WRONG_VALUES and not below.get("x-kubernetes-int-or-string"):
            yield f"{shown} is of another type", _with(whole, where, _WRONG_VALUES[below["type"]])
        if below.get("enum"):
            yield f"{shown} is none of its values", _with(whole, where, "none-of-them")
        if "minimum" in below:
            yield f"{shown} is below its minimum", _with(whole, where, below["minimum"] - 1)
        if "maximum" in below:
            yield f"{shown} is above its maximum", _with(whole, where, below["maximum"] + 1)
        if isinstance(below.get("maxLength"), int) and below["maxLength"] < 300:
            yield f"{shown} is too long", _with(whole, where, "a" * (below["maxLength"] + 1))
        if name in (node.get("required") or ()):
            yield f"{shown} is missing", _without(whole, where)
        if below.get("type") == "object":
            yield from _broken(below, whole, where)


def _with(whole: Object, path: tuple[str, ...], value: Any) -> Object:
    changed: Object = copy_json(whole)
    place = changed
    for name in path[:-1]:
        if not isinstance(place.get(name), dict):
            place[name] = {}
        place = place[name]
    place[path[-1]] = value
    return changed


def _without(whole: Object, path: tuple[str, ...]) -> Object:
    changed = _with(whole, path, None)
    place = changed
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    return changed


class _Block(str):
    """A string written as a YAML block."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
)


def _text(obj: Object) -> str:
    return yaml.safe_dump(obj, sort_keys=False, allow_unicode=True)


def _written(document: Object) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
