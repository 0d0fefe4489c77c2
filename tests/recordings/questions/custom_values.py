"""Objects of a CRD judged by its schema: a field for each keyword, values that fit and that do
not; defaults, pruning, embedded objects; random objects from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import Scenario, a_version, with_spec

_STRING, _INTEGER = {"type": "string"}, {"type": "integer"}
_ANY: list[Any] = ["a", "", 1, 1.5, True, None, [], {}, ["a"], {"a": 1}]


def _object(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


def _array(items: Any, **more: Any) -> Object:
    return {"type": "array", "items": items, **more}


_FIELDS: dict[str, tuple[Object, list[Any]]] = {
    "string": (_STRING, _ANY),
    "integer": (_INTEGER, [*_ANY, 2**31, 2**53, 2**63 - 1, -(2**63), 1.0, 1e3, "1"]),
    "number": ({"type": "number"}, [*_ANY, 1e300, 0.1, -0.0, 2**60]),
    "boolean": ({"type": "boolean"}, [*_ANY, "true", 0]),
    "array": (_array(_STRING), [*_ANY, ["a", 1], [None], [["a"]]]),
    "map": ({"type": "object", "additionalProperties": _INTEGER}, [*_ANY, {"a": "x"}, {"a": None}, {"": 1}]),
    "object": (_object(a=_STRING, b=_INTEGER), [*_ANY, {"a": "x", "c": 1}, {"b": "x"}, {"a": None}]),
    "nullable": ({**_STRING, "nullable": True}, [None, "a", 1]),
    "ios": ({"x-kubernetes-int-or-string": True}, [*_ANY, "5", -1]),
    "preserve": ({"x-kubernetes-preserve-unknown-fields": True}, _ANY),
    "kept": ({**_object(a=_STRING), "x-kubernetes-preserve-unknown-fields": True}, [{"z": 1}, {"a": 1, "z": None}]),
    "min": ({**_INTEGER, "minimum": 3}, [2, 3, -1]),
    "emin": ({**_INTEGER, "minimum": 3, "exclusiveMinimum": True}, [3, 4]),
    "max": ({"type": "number", "maximum": 3.5}, [3.5, 3.6, 4]),
    "emax": ({"type": "number", "maximum": 3, "exclusiveMaximum": True}, [3, 2.99]),
    "multiple": ({**_INTEGER, "multipleOf": 5}, [5, 7, 0]),
    "fraction": ({"type": "number", "multipleOf": 0.1}, [0.3, 0.35]),
    "minlen": ({**_STRING, "minLength": 2}, ["", "a", "ab", "é", "éé"]),
    "maxlen": ({**_STRING, "maxLength": 2}, ["ab", "abc", "ééé", "日本語"]),
    "pattern": ({**_STRING, "pattern": "^[a-z]+$"}, ["abc", "Abc", "", "a\n"]),
    "unicode": ({**_STRING, "pattern": r"\p{L}+"}, ["é", "1"]),
    "enum": ({**_STRING, "enum": ["a", "b"]}, ["a", "c", "", None]),
    "enumint": ({**_INTEGER, "enum": [1, 2]}, [1, 3, 1.0]),
    "enumany": ({"x-kubernetes-preserve-unknown-fields": True, "enum": ["a", 1, {"b": 2}]}, ["a", 1, 2, {"b": 2}, [1]]),
    "minitems": (_array(_INTEGER, minItems=2), [[], [1], [1, 2]]),
    "maxitems": (_array(_INTEGER, maxItems=1), [[1], [1, 2], [1, "a"]]),
    "minprops": ({"type": "object", "additionalProperties": _STRING, "minProperties": 1}, [{}, {"a": "b"}]),
    "maxprops": ({"type": "object", "additionalProperties": _STRING, "maxProperties": 1}, [{"a": "b"}, {"a": "b", "c": "d"}]),
    "set": (_array(_STRING, **{"x-kubernetes-list-type": "set"}), [["a", "b"], ["a", "a"], ["a", "b", "a", "b", "b"]]),
    "keyed": (_array({**_object(k=_STRING, n={**_INTEGER, "default": 7}, v=_STRING), "required": ["k"]},
                     **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"]}),
              [[{"k": "a"}], [{"k": "a"}, {"k": "a"}], [{"k": "a"}, {"k": "a", "n": 7}], [{"k": "a"}, {"k": "a", "n": 8}],
               [{}], [{"v": "x"}, {"v": "y"}], [None], ["a"], [{"k": None}]]),
    "required": ({**_object(a=_STRING, b=_STRING), "required": ["a", "b"]}, [{}, {"a": "x"}, {"a": None, "b": None}]),
    "allof": ({**_INTEGER, "allOf": [{"minimum": 1}, {"maximum": 5}, {"multipleOf": 2}]}, [0, 2, 3, 7]),
    "anyof": ({**_INTEGER, "anyOf": [{"minimum": 10}, {"maximum": 5}]}, [4, 7, 12]),
    "oneof": ({**_object(a=_STRING, b=_STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
              [{}, {"a": "x"}, {"a": "x", "b": "y"}]),
    "not": ({**_STRING, "not": {"enum": ["x"]}}, ["x", "y"]),
    "nested": ({**_object(a=_object(b=_array(_object(c=_INTEGER)))), "anyOf": [
        {"properties": {"a": {"properties": {"b": {"minItems": 1}}}}}, {"required": ["z"]}]},
        [{"a": {"b": []}}, {"a": {"b": [{"c": "x"}]}}, {"a": {"b": [{"c": 1, "d": 2}]}}, {"a": 1}]),
    "default": ({**_object(a={**_STRING, "default": "x"}, b={**_INTEGER, "default": 3}), "default": {"b": 4}},
                [{}, {"a": "y"}, {"b": None}, None, {"a": None, "b": 1}]),
    "deep": (_object(a={**_object(b={**_object(c={**_STRING, "default": "d"}), "default": {}}), "default": {}}), [{}, {"a": {}}, {"a": {"b": {}}}]),
    "listdefault": (_array(_object(x={**_STRING, "default": "y"})), [[], [{}], [{"x": None}, {"x": "z"}], [None]]),
    "mapdefault": ({"type": "object", "additionalProperties": _object(x={**_STRING, "default": "y"})}, [{"a": {}}, {"a": None}]),
    "nulldefault": ({**_STRING, "nullable": True, "default": "q"}, [None, "a"]),
    "embedded": ({"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
                 [{}, {"apiVersion": "v1"}, {"kind": "Pod"}, {"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "a/b/c", "kind": "P"},
                  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Bad_Name", "labels": {"a b": "c"}}},
                  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ok", "other": 1, "labels": {"a": 1}}},
                  {"apiVersion": "v1", "kind": "Pod", "metadata": []}, {"apiVersion": "v1", "kind": "Pod", "metadata": None, "x": {"y": 1}},
                  {"apiVersion": "v1", "kind": "bad kind", "metadata": {"generateName": "X-", "namespace": "a_b"}}]),
}  # fmt: skip
_FORMATS: dict[str, list[str]] = {
    "date-time": ["2020-01-01T00:00:00Z", "2020-01-01", "2020-13-01T00:00:00Z", "2020-01-01T00:00:00.123+01:00", ""],
    "date": ["2020-01-01", "2020-1-1", "2020-02-30"], "duration": ["1h", "1.5s", "1d", "P1D", "x", "-1s", "3 weeks"],
    "ipv4": ["1.2.3.4", "1.2.3", "::1", "01.2.3.4"], "ipv6": ["::1", "1.2.3.4", "fe80::1%eth0"],
    "cidr": ["10.0.0.0/8", "10.0.0.1", "::/0", "10.0.0.0/33"], "mac": ["00:11:22:33:44:55", "001122334455", "x"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000", "x"],
    "uuid4": ["123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"],
    "email": ["a@b.c", "a", "a b@c.d", "A <a@b.c>"], "hostname": ["a.b", "a_b", "-a", "é.com", "a" * 64],
    "uri": ["http://a/b", "a", "http://a b", "urn:x:y", "/a"], "byte": ["YQ==", "a", "%", ""],
    "isbn": ["0321751043", "9780321751041", "1"], "isbn10": ["0321751043", "0321751042"], "isbn13": ["9780321751041", "9780321751040"],
    "creditcard": ["4111111111111111", "4111111111111112", "1"], "ssn": ["123-45-6789", "12-345-6789"],
    "hexcolor": ["#fff", "#ffffff", "fff", "#ggg"], "rgbcolor": ["rgb(0,0,0)", "rgb(0,0,300)", "0,0,0"],
    "bsonobjectid": ["507f1f77bcf86cd799439011", "x"], "password": ["x"], "no-such": ["x"],
    "k8s-short-name": ["abc", "Abc", "a.b"], "k8s-long-name": ["a.b", "A.b"],
}  # fmt: skip


def _fields() -> Iterator[Scenario]:
    names = list(_FIELDS)
    for part in range(3):
        scenario = Scenario(f"values-{part}")
        own = names[part::3]
        scenario.make_crd(scenario.crd(with_spec(**{name: _FIELDS[name][0] for name in own})))
        path = f"{scenario.path('foos')}?dryRun=All"
        for name in own:
            for value in _FIELDS[name][1]:
                scenario.post(path, scenario.object("a", spec={name: value}), name)
        yield scenario


def _formats() -> Iterator[Scenario]:
    scenario = Scenario("formats")
    schemas = {
        f"f{place}": {"type": "string", "format": name} for place, name in enumerate(_FORMATS)
    }
    scenario.make_crd(scenario.crd(with_spec(**schemas)))
    path = f"{scenario.path('foos')}?dryRun=All"
    for place, (name, values) in enumerate(_FORMATS.items()):
        for value in values:
            scenario.post(path, scenario.object("a", spec={f"f{place}": value}), name)
    numbers = Scenario("number-formats")
    kinds = {"int32": "integer", "int64": "integer", "float": "number", "double": "number"}
    schemas = {name: {"type": kind, "format": name} for name, kind in kinds.items()}
    numbers.make_crd(numbers.crd(with_spec(**schemas)))
    many: tuple[Any, ...] = (1, 2**31, -(2**31) - 1, 2**63 - 1, 1.5, 1e39, 3.5e38, "1")
    for name in kinds:
        for number in many:
            numbers.post(
                f"{numbers.path('foos')}?dryRun=All", numbers.object("a", spec={name: number}), name
            )
    yield scenario
    yield numbers


def _random_value(dice: random.Random, depth: int) -> Any:
    kind = dice.randrange(9 if depth else 6)
    if kind < 6:
        return ("a", "b" * 7, 3, -2.5, None, True)[kind]
    if kind == 6:
        return [_random_value(dice, depth - 1) for _ in range(dice.randrange(3))]
    return {name: _random_value(dice, depth - 1) for name in ("a", "b", "k") if dice.randrange(2)}


def _random() -> Iterator[Scenario]:
    """Several fields at once: which errors are told, and in which order."""
    dice = random.Random(36)
    for part in range(3):
        scenario = Scenario(f"random-values-{part}")
        names = [name for name in _FIELDS if name != "embedded"][part::3]
        scenario.make_crd(scenario.crd(with_spec(**{name: _FIELDS[name][0] for name in names})))
        for number in range(60):
            spec = {}
            for name in dice.sample(names, 3):
                own = _FIELDS[name][1]
                spec[name] = dice.choice(own) if dice.randrange(3) else _random_value(dice, 2)
            scenario.post(
                f"{scenario.path('foos')}?dryRun=All",
                scenario.object(f"r{number}", spec=spec),
                unordered=True,
            )
        yield scenario


def _updates() -> Iterator[Scenario]:
    """Ratcheting: an invalid value that does not change is let through."""
    scenario = Scenario("ratcheting")
    loose = {
        "s": _STRING,
        "i": _INTEGER,
        "l": _array(_STRING),
        "m": {"type": "object", "additionalProperties": _STRING},
    }
    scenario.make_crd(scenario.crd(with_spec(**loose)))
    body = scenario.object(
        "old", spec={"s": "long text", "i": 100, "l": ["long", "longer"], "m": {"a": "long"}}
    )
    scenario.post(scenario.path("foos"), body)
    strict = {"s": {**_STRING, "maxLength": 3}, "i": {**_INTEGER, "maximum": 5},
              "l": _array({**_STRING, "maxLength": 3}, maxItems=1), "m": {**loose["m"], "additionalProperties": {**_STRING, "maxLength": 2}}}  # fmt: skip
    version = a_version("v1", with_spec(**strict))
    scenario.change_crd(f"foos.{scenario.group}", {"spec": {"versions": [version]}})
    path = scenario.path("foos", "old")
    for change in ({"metadata": {"labels": {"a": "b"}}}, {"spec": {"s": "other text"}}, {"spec": {"i": 101}}, {"spec": {"i": 3}},
                   {"spec": {"l": ["long", "longer", "x"]}}, {"spec": {"l": ["longer", "long"]}}, {"spec": {"l": ["long", "new and long"]}},
                   {"spec": {"m": {"b": "x"}}}, {"spec": {"m": {"c": "too long"}}}, {"spec": {"s": "abc"}}, {"spec": {"s": "abcd"}}):  # fmt: skip
        scenario.merge(path, change)
    scenario.post(scenario.path("foos"), {**body, "metadata": {"name": "new"}}, unordered=True)
    scenario.get(path)
    yield scenario


def scenarios() -> Iterator[Scenario]:
    for maker in (_fields, _formats, _random, _updates):
        yield from maker()
