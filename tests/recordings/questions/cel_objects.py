"""Objects judged by the CEL rules of a CRD: a field for each rule, values that keep and break it;
transition rules, messages, reasons, field paths, and what a rule that fails when run says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import Scenario, with_spec

_STRING: Object = {"type": "string", "maxLength": 50}
_INTEGER: Object = {"type": "integer"}


def _list(items: Any = _STRING, **more: Any) -> Object:
    return {"type": "array", "items": items, "maxItems": 8, **more}


_TEXTS = ("self.startsWith('a')", "self.endsWith('z')", "self.contains('b')", "self.matches('^[a-z]+$')", "self.size() < 3",
          "self == self.lowerAscii()", "self.split('-').size() == 2", "self.replace('a', 'b') == 'b'", "self.substring(1, 2) == 'b'",
          "self.indexOf('b') == 1", "int(self) > 5", "double(self) > 1.5", "isQuantity(self)", "quantity(self).isLessThan(quantity('1Gi'))",
          "isURL(self)", "url(self).getHostname() == 'h'", "isIP(self)", "ip(self).family() == 4", "isCIDR(self)", "cidr(self).prefixLength() == 8",
          "timestamp(self).getFullYear() == 2020", "duration(self) < duration('1h')", "self.trim() == self", "isSemver(self)",
          "semver(self).compareTo(semver('1.2.3')) > 0", "!format.dns1123Label().validate(self).hasValue()", "self.find('[0-9]+') != ''",
          "self.charAt(0) == 'a'", "bool(self)", "self in ['a', 'b']", "self.findAll('a').size() == 2",)  # fmt: skip
_TEXT_VALUES = (
    "",
    "a",
    "abz",
    "a-b",
    "7",
    "100Mi",
    "http://h:1/p",
    "10.0.0.0",
    "2020-01-01T00:00:00Z",
    "30m",
    "1.2.4",
)
_NUMBERS = ("self > 0", "self % 2 == 0", "10 / self == 2", "self * 2 < 100", "string(self) == '5'", "self in [1, 5]", "-self < 0",
            "self + 9223372036854775807 > 0", "double(self) / 2.0 == 2.5",)  # fmt: skip
_LISTS = ("self.all(x, x != '')", "self.exists(x, x == 'a')", "self.exists_one(x, x == 'a')", "self.map(x, x + 'z').size() > 1",
          "self.filter(x, x.startsWith('a')).size() == self.size()", "self[0] == 'a'", "self.isSorted()", "self.join('-') == 'a-b'",
          "self.indexOf('b') == 1", "sets.contains(self, ['a'])", "self.min() == 'a'", "self[?1].orValue('none') == 'b'", "self == ['a', 'b']",
          "self.all(i, v, i < 2)", "self.transformList(i, v, v + 'x').size() == 2", "self + ['c'] == ['a', 'b', 'c']", "'a' in self")  # fmt: skip
_LIST_VALUES: tuple[list[str], ...] = ([], ["a"], ["a", "b"], ["b", "a"], ["a", "a", ""])
_MAPS = ("self.all(k, k.size() < 3)", "self['a'] == 'x'", "'a' in self && self.a == 'x'", "self.exists(k, self[k] == 'x')", "self.size() == 2",
         "has(self.a) || has(self.b)", "self.all(k, v, k != v)", "self.?a.orValue('') == 'x'", "self == {'a': 'x'}")  # fmt: skip
_MAP_VALUES: tuple[Object, ...] = ({}, {"a": "x"}, {"a": "y", "b": "x"}, {"long": "x", "a": "a"})


def _ruled(schema: Object, *rules: Any) -> Object:
    validations = [rule if isinstance(rule, dict) else {"rule": rule} for rule in rules]
    return {**schema, "x-kubernetes-validations": validations}


def _by_rule(
    name: str, schema: Object, rules: tuple[str, ...], values: tuple[Any, ...]
) -> Scenario:
    scenario = Scenario(name)
    properties = {f"r{place}": _ruled(schema, rule) for place, rule in enumerate(rules)}
    scenario.make_crd(scenario.crd(with_spec(**properties)))
    path = f"{scenario.path('foos')}?dryRun=All"
    for place, rule in enumerate(rules):
        chosen = (
            values
            if len(values) < 8
            else [values[(place + step) % len(values)] for step in (0, 1, 3, 5, 8)]
        )
        for value in chosen:
            scenario.post(
                path, scenario.object("a", spec={f"r{place}": value}), rule, only_failure=True
            )
    # All rules at once: which errors are told, and in which order.
    for value in values:
        spec = {f"r{place}": value for place in range(len(rules))}
        scenario.post(
            path, scenario.object("a", spec=spec), "all", only_failure=True, unordered=True
        )
    return scenario


_SPEAKING: list[Any] = [
    {"rule": "self.i > 0", "message": "i must be positive"},
    {"rule": "self.i < 100", "messageExpression": "self.i > 1000 ? 'i is huge' : 'i is large'"},
    {"rule": "self.i != 7", "messageExpression": "1 / (self.i - 7) > 0 ? 'a' : 'b'"},
    {"rule": "self.i != 8", "messageExpression": "'two\\nlines'"},
    {"rule": "self.i != 9", "messageExpression": "''"},
    {"rule": "self.i != 10", "messageExpression": "' '", "message": "fallback"},
    {"rule": "self.i != 11", "reason": "FieldValueForbidden"},
    {"rule": "self.i != 12", "reason": "FieldValueRequired", "message": "needed"},
    {"rule": "self.i != 13", "reason": "FieldValueDuplicate", "fieldPath": ".s"},
    {"rule": "self.i != 14", "reason": "FieldValueInvalid", "fieldPath": ".o.x"},
    {"rule": "self.i != 15", "fieldPath": ".m['a']"},
    {"rule": "self.i != 16 || self.m['none'] == 'x'"},
    {"rule": "self.i != 17 || self.l[5] == 'x'"},
    {"rule": "self.i != 18 || 1 / (self.i - 18) == 1"},
    {"rule": "self.i != 19 || int(self.s) == 1"},
    {"rule": "self.i != 20 || has(self.o.x)"},
    {"rule": "self.i != 21 || self.o.x == 'x'"},
    {"rule": "self.i != 22 || dyn(self.s) == 1"},
    {"rule": "self.i != 23 || self.l.map(x, self.l.map(y, x + y)).size() == 99"},
]  # fmt: skip


def _messages() -> Scenario:
    scenario = Scenario("cel-messages")
    spec = _ruled({
        "type": "object",
        "properties": {
            "i": _INTEGER, "s": _STRING, "l": _list(), "o": {"type": "object", "properties": {"x": _STRING}},
            "m": {"type": "object", "additionalProperties": _STRING, "maxProperties": 5},
        },
    }, *_SPEAKING)  # fmt: skip
    scenario.make_crd(scenario.crd({"type": "object", "properties": {"spec": spec}}))
    for value in (*range(25), 100, -5):
        scenario.post(
            scenario.path("foos"),
            scenario.object(f"a{value}", spec={"i": value, "s": "x", "l": ["a"], "m": {}, "o": {}}),
        )
    for spec in ({}, {"i": None}, {"i": "x"}, {"i": 5, "s": 1}):
        scenario.post(scenario.path("foos"), scenario.object("odd", spec=spec))
    return scenario


def _transitions() -> Scenario:
    scenario = Scenario("cel-transitions")
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    item = {
        "type": "object",
        "properties": {"k": _STRING, "v": _ruled(_STRING, "self == oldSelf")},
        "required": ["k"],
    }
    properties = {
        "fixed": _ruled(_STRING, {"rule": "self == oldSelf", "message": "cannot change"}),
        "grows": _ruled(_INTEGER, "self >= oldSelf"), "keyed": _list(item, **keyed),
        "first": _ruled(_STRING, {"rule": "!oldSelf.hasValue() || oldSelf.value() != 'final'", "optionalOldSelf": True}),
        "map": {"type": "object", "maxProperties": 4, "additionalProperties": _ruled(_STRING, "self.size() >= oldSelf.size()")},
        "set": _ruled(_list(**{"x-kubernetes-list-type": "set"}), "oldSelf.all(x, x in self)"),
        "once": _STRING,
    }  # fmt: skip
    spec = _ruled(
        {"type": "object", "properties": properties}, "!has(oldSelf.once) || has(self.once)"
    )
    scenario.make_crd(scenario.crd({"type": "object", "properties": {"spec": spec}}))
    full = {
        "fixed": "a",
        "grows": 5,
        "keyed": [{"k": "x", "v": "1"}],
        "first": "b",
        "map": {"m": "aa"},
        "set": ["p"],
        "once": "o",
    }
    scenario.post(scenario.path("foos"), scenario.object("t", spec=full))
    path = scenario.path("foos", "t")
    changes: list[Any] = [
        {"fixed": "b"}, {"fixed": None}, {"fixed": "c"}, {"fixed": "d"}, {"grows": 4}, {"grows": 6}, {"grows": None},
        {"keyed": [{"k": "x", "v": "2"}]}, {"keyed": [{"k": "y", "v": "2"}]}, {"keyed": [{"k": "y", "v": "2"}, {"k": "x", "v": "9"}]},
        {"keyed": [{"k": "x", "v": "9"}, {"k": "y", "v": "3"}]}, {"first": "final"}, {"first": "after"}, {"first": None}, {"map": {"m": "a"}},
        {"map": {"m": None, "n": "x"}}, {"map": {"n": "xyz"}}, {"set": ["q"]}, {"set": ["q", "p"]}, {"set": None}, {"once": None}, {"once": "x"},
        {"fixed": "e", "grows": 1, "once": None},
    ]  # fmt: skip
    for change in changes:
        scenario.merge(path, {"spec": change}, "change")
    scenario.put(path, scenario.object("t", spec=full), "put")
    scenario.merge(path, {"spec": None}, "spec gone")
    scenario.merge(path, {"spec": {"fixed": "z"}}, "spec again")
    return scenario


def _root() -> Scenario:
    scenario = Scenario("cel-metadata")
    schema = with_spec(n=_INTEGER)
    schema["properties"]["status"] = {"type": "object", "properties": {"n": _INTEGER}}
    rules = [
        {"rule": "self.metadata.name.startsWith('a')"},
        {"rule": "!has(self.status) || !has(self.status.n) || self.status.n <= self.spec.n"},
    ]
    scenario.make_crd(scenario.crd([{
        "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {**schema, "x-kubernetes-validations": rules}},
    }]))  # fmt: skip
    foos = scenario.path("foos")
    scenario.post(foos, scenario.object("a", spec={"n": 3}))
    scenario.post(foos, scenario.object("b", spec={"n": 3}))
    scenario.post(
        foos, {**scenario.object("x", spec={"n": 3}), "metadata": {"generateName": "a-gen-"}}
    )
    scenario.post(
        foos, {**scenario.object("x", spec={"n": 3}), "metadata": {"generateName": "b-gen-"}}
    )
    for number in (2, 3, 4):
        scenario.merge(scenario.path("foos", "a/status"), {"status": {"n": number}})
    scenario.merge(scenario.path("foos", "a"), {"spec": {"n": 1}})
    scenario.get(scenario.path("foos", "a"))
    return scenario


def scenarios() -> Iterator[Scenario]:
    yield _by_rule("cel-texts", _STRING, _TEXTS, _TEXT_VALUES)
    yield _by_rule("cel-numbers", _INTEGER, _NUMBERS, (-5, 0, 1, 5, 50))
    yield _by_rule("cel-lists", _list(), _LISTS, _LIST_VALUES)
    yield _by_rule(
        "cel-maps",
        {"type": "object", "additionalProperties": _STRING, "maxProperties": 4},
        _MAPS,
        _MAP_VALUES,
    )
    yield _messages()
    yield _transitions()
    yield _root()
