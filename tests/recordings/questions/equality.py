"""Values that Python takes for the same and kube-apiserver does not, or the other way round: each
pair is written over each other, tested by JSON patch, applied, and put into sets, maps and enums."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from instar.base.json_values import Object
from tests.recordings.scenarios import Scenario

_FAMILIES = [
    ["true", "1", "1.0", "1e0"],
    ["false", "0", "0.0", "-0.0"],
    ["100000000000000000000", "1e2", "100"],
    ["9007199254740993", "9007199254740993.0"],
    ['""', "null", "[]", "{}"],
    ["[1]", "[true]", "[1.0]"],
    ['{"a":1}', '{"a":1.0}', '{"a":true}', '{"a":1,"b":null}'],
]
_PAIRS = [pair for family in _FAMILIES for pair in itertools.permutations(family, 2)]
_LISTS = ["[1,1.0]", "[1,true]", "[0,-0.0]", "[1e20,100000000000000000000]", '["1",1]']
_ENUM = ["1", "1.0", "true", '"a"', "null", '{"a":1}', '{"a":1.0}', '{"a":true}', "[1]", "[1.0]"]


def _schema() -> Object:
    number, free = {"type": "number"}, {"x-kubernetes-preserve-unknown-fields": True}
    item = {"type": "object", "properties": {"k": number}, "required": ["k"]}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    either = {"x-kubernetes-int-or-string": True}
    properties = {
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": number},
        "either": {"type": "array", "x-kubernetes-list-type": "set", "items": either},
        "keyed": {"type": "array", "items": item, **keyed},
        "enum": {**free, "enum": [1, True, "a", None, {"a": 1}, [1]]},
        "same": {"type": "object", **free, "properties": {"a": free, "b": free}},
    }
    return {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties, **free}},
    }


def scenarios() -> Iterator[Scenario]:
    scenario = Scenario("equality")
    scenario.make_crd(scenario.crd(_schema()))
    for number, (old, new) in enumerate(_PAIRS):
        _pair(scenario, f"p{number}", old, new)
    path = scenario.path("foos")
    for number, values in enumerate(_LISTS):
        for field in ("numbers", "either"):
            body = _body(scenario, f"{field}-{number}", f'{{"{field}":{values}}}')
            scenario.post(path, body)
        items = ",".join(f'{{"k":{value}}}' for value in values.strip("[]").split(","))
        scenario.post(path, _body(scenario, f"keyed-{number}", f'{{"keyed":[{items}]}}'))
    for number, value in enumerate(_ENUM):
        scenario.post(path, _body(scenario, f"enum-{number}", f'{{"enum":{value}}}'))
    yield scenario


def _body(scenario: Scenario, name: str, spec: str, revision: str = "") -> str:
    """As text, because the numbers matter as they are spelled."""
    known = f',"resourceVersion":"{revision}"' if revision else ""
    head = f'"apiVersion":"{scenario.group}/v1","kind":"Foo"'
    return f'{{{head},"metadata":{{"name":"{name}"{known}}},"spec":{spec}}}'


def _pair(scenario: Scenario, name: str, old: str, new: str) -> None:
    path = scenario.path("foos", name)
    scenario.post(scenario.path("foos"), _body(scenario, name, f'{{"x":{old}}}'), only_code=True)
    scenario.merge(path, f'{{"spec":{{"x":{new}}}}}', f"merged {name}")
    revision = f"{{{{merged {name}.metadata.resourceVersion}}}}"
    scenario.put(path, _body(scenario, name, f'{{"x":{old}}}', revision))
    scenario.json_patch(path, f'[{{"op":"test","path":"/spec/x","value":{new}}}]')
    scenario.apply(path, _body(scenario, name, f'{{"x":{old}}}'), "one", force=True)
    scenario.apply(path, _body(scenario, name, f'{{"x":{new}}}'), "other", force=True)
