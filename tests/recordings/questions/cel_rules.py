"""CEL rules of CRDs, created with ``dryRun=All``: whether they compile and what they may cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import CRDS, Scenario

_DRY = f"{CRDS}?dryRun=All"
_STRING: Object = {"type": "string", "maxLength": 20}
_UNBOUND: Object = {"type": "string"}


def _array(items: Any, most: Any = 10, **more: Any) -> Object:
    bound = {} if most is None else {"maxItems": most}
    return {"type": "array", "items": items, **bound, **more}


_FIELDS: Object = {
    "s": _STRING, "t": _STRING, "i": {"type": "integer"}, "n": {"type": "number"},
    "b": {"type": "boolean"}, "l": _array(_STRING), "li": _array({"type": "integer"}),
    "m": {"type": "object", "additionalProperties": _STRING, "maxProperties": 5},
    "o": {"type": "object", "properties": {"x": _STRING, "y": {"type": "integer"}}},
    "lo": _array({"type": "object", "properties": {"k": _STRING, "v": {"type": "integer"}}}),
    "lm": _array({"type": "object", "properties": {"k": _STRING, "v": _STRING}, "required": ["k"]},
                 **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
    "ls": _array(_STRING, **{"x-kubernetes-list-type": "set"}),
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "ios": {"x-kubernetes-int-or-string": True},
    "d": {"type": "string", "format": "date-time"}, "du": {"type": "string", "format": "duration"},
    "da": {"type": "string", "format": "date"}, "by": {"type": "string", "format": "byte", "maxLength": 9},
    "e": {"type": "string", "enum": ["a", "b"]}, "namespace": _STRING, "true-ish": _STRING,
    "emb": {"type": "object", "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True},
    "nul": {"type": "string", "nullable": True, "maxLength": 9},
}  # fmt: skip
_UNBOUNDED: Object = {
    "s": _UNBOUND, "l": _array(_UNBOUND, None), "m": {"type": "object", "additionalProperties": _UNBOUND},
    "ll": _array(_array(_UNBOUND, None), None),
    "lo": _array({"type": "object", "properties": {"k": _UNBOUND}}, None),
}  # fmt: skip
RULES = (
    "true", "", " ", "self", "self.s", "1", "'a'", "self.s == 'a'", "self.none == 1", "self.i == 'a'",
    "self.i == 1.0", "self.n == 1", "self.n > 1", "self.i > 1 && self.n > 1.5", "self.b", "!self.b",
    "!self.s", "self.s + self.t == 'ab'", "self.s + self.i == 'a1'", "size(self.s) > 1", "self.s.size() > 1",
    "size(self.i) > 1", "has(self.s)", "has(self.none)", "has(self)", "has(self.o.x)", "self.o.x == 'a'",
    "self.o.z == 1", "self.l.all(x, x == 'a')", "self.l.exists(x, x.none)", "self.l.all(x, x)", "self.l[0] == 'a'",
    "self.l['a'] == 1", "self.li.exists_one(x, x == 1)", "self.li.map(x, x * 2).size() == 1",
    "self.li.filter(x, x > 1).size() > 0", "self.l.all(x, y, x > 0)", "self.m['a'] == 'b'", "'a' in self.m",
    "self.m.all(k, k == 'a')", "self.m.exists(k, self.m[k] == 'x')", "self.m.a == 'b'", "self.lo.all(x, x.k == 'a')",
    "self.lo.all(x, x.v > 'a')", "self.lo.map(x, x.k).exists(k, k == 'a')", "self.lm.exists(x, x.k == 'a')",
    "self.ls.all(x, x in self.l)", "self.ls == self.l", "self.any == 1", "self.any.x == 1", "has(self.any)",
    "self.ios == 5", "self.ios == '5'", "type(self.ios) == int", "type(self.ios) == string ? self.ios == 'a' : true",
    "self.d > timestamp('2020-01-01T00:00:00Z')", "self.d.getFullYear() > 2000", "self.d == 'x'",
    "self.du < duration('1h')", "self.du.getHours() == 1", "self.da.getMonth() == 1", "self.by == b'abc'",
    "self.e == 'c'", "self.e in ['a', 'b']", "self.namespace == 'a'", "self.__namespace__ == 'a'",
    "self.true__dash__ish == 'a'", "self.emb.kind == 'Pod'", "self.emb.metadata.name == 'a'", "self.emb.spec == 1",
    "self.emb.metadata.labels == 1", "self.nul == null", "self.s == null", "has(self.nul) && self.nul == null",
    "self.s.startsWith('a')", "self.s.endsWith('a') || self.s.contains('b')", "self.s.matches('^a+$')",
    "self.s.matches('(')", "self.s.matches(self.t)", "self.s.find('[0-9]+') == '1'", "self.s.findAll('a').size() > 0",
    "self.s.lowerAscii() == 'a'", "self.s.upperAscii() == 'A'", "self.s.split(',').size() > 1",
    "self.s.split(',', 2)[0] == 'a'", "self.s.replace('a', 'b') == 'c'", "self.s.substring(1) == 'a'",
    "self.s.trim() == 'a'", "self.s.charAt(0) == 'a'", "self.s.indexOf('a') == 0", "self.s.lastIndexOf('a') == 0",
    "self.l.join(',') == 'a'", "self.l.join() == 'a'", "self.li.sum() > 1", "self.li.min() > 1", "self.li.max() < 9",
    "self.l.sum() == 'a'", "self.li.isSorted()", "self.lo.isSorted()", "self.l.indexOf('a') == 1",
    "url(self.s).getHost() == 'a'", "isURL(self.s)", "url(self.s).getPort() == 1", "quantity(self.s).isGreaterThan(quantity('1'))",
    "isQuantity(self.s) && quantity(self.s).asInteger() > 1", "quantity(self.s).add(1).sign() == 1",
    "ip(self.s).family() == 4", "isIP(self.s)", "cidr(self.s).containsIP('1.2.3.4')", "isCIDR(self.s)",
    "ip.isCanonical(self.s)", "format.dns1123Label().validate(self.s).hasValue()", "format.named('uuid').hasValue()",
    "semver(self.s).major() == 1", "isSemver(self.s)", "self.s.format([1]) == 'a'", "'%d'.format([self.i]) == '1'",
    "'%s %s'.format([self.s]) == 'a'", "'%y'.format([1]) == ''", "sets.contains(self.l, ['a'])", "sets.intersects(self.l, self.ls)",
    "sets.equivalent(self.l, [1])", "base64.encode(b'a') == 'YQ=='", "math.greatest(1, 2) == 2", "math.greatest(self.li) > 1",
    "self.?s.orValue('a') == 'a'", "self.?o.?x.hasValue()", "optional.of(self.s).value() == 'a'", "optional.none().hasValue()",
    "self.l[?0].orValue('') == 'a'", "{'a': 1}.a == 1", "[1, 2, 3].all(x, x > 0)", "[1, 'a'].size() == 2", "{1: 'a', 'b': 2}.size() == 2",
    "cel.bind(x, self.s, x == 'a')", "self.s == 'a' ? true : 'b'", "self.s == 'a' ? self.i : self.n", "self.i / 0 == 1", "1 / 0 == 1",
    "self.i % 2 == 0", "-self.i < 0", "self.i + 1.0 == 2.0", "int(self.n) == 1", "double(self.i) == 1.0", "string(self.i) == '1'",
    "uint(self.i) == 1u", "int('x') == 1", "bool('true')", "bytes(self.s) == b'a'", "timestamp(self.s) == self.d", "duration(self.s) == self.du",
    "dyn(self.s) == 1", "dyn(self) == 1", "type(self) == map", "type(self.s) == string", "oldSelf.s == self.s", "self == oldSelf",
    "oldSelf == null", "oldSelf.none == 1", "self.s == oldSelf.s && true", "self.l.all(x, oldSelf.l.exists(y, y == x))",
    "authorizer.group('').resource('pods').check('get').allowed()", "request.userInfo.username == 'a'", "params.x == 1", "object.spec == 1",
    "variables.x == 1", "namespaceObject.metadata.name == 'a'", "self.s ==", "self.s = 'a'", "(self.s == 'a'", "self.s == 'a')", "self..s == 1",
    "self.s == \"a", "self.s == 'a' and true", "if true", "x", "undefined()", "self.s.undefined()", "self.s.size(1)", "has(1)", "has(self.s.size())",
    "self.l.all(self, true)", "self.l.all(x)", "self.l.map(x, true, x)", "self.s[0] == 'a'", "self.i.x == 1", "self.b == 'true'", "self in [1]",
    "self.s in self.m", "1 in self.m", "self.i in self.li", "self.s in self.li", "null == null", "self.o == self.o", "self.o == {'x': 'a'}",
    "self.lo == self.lo", "self.lo[0] == self.lm[0]", "self.l + self.ls == self.l", "self.lo + self.lm == []", "true || self.none", "self.s == r'a\\d'",
    "self.s == '''a'''", "self.s == '\\x41'", "self.s == '\\q'", "self.i == 0x10", "self.i == 1u", "self.n == 1e3", "self.i == 9223372036854775808",
    "self.l.all(x, self.l.all(y, self.l.all(z, x == y || y == z)))", "self.l.transformList(i, v, v).size() > 0", "self.m.transformMap(k, v, v).size() > 0",
    "self.l.exists(i, v, i > 0 && v == 'a')", "self.m.all(k, v, k == v)", "self.lo.exists(i, v, v.k == 'a')", "self.s.reverse() == 'a'",
    "strings.quote(self.s) == 'a'", "self.li.slice(0, 1) == [1]", "self.li.flatten() == []", "self.li.distinct() == []", "self.li.sort() == []",
    "self.lo.sortBy(x, x.k) == []", "lists.range(3) == [0, 1, 2]", "self.l.first() == 'a'", "regex.replace(self.s, 'a', 'b') == 'c'",
)  # fmt: skip
_PLACES: list[tuple[str, Object]] = [
    ("scalar", {**_STRING, "x-kubernetes-validations": [{"rule": "self == 'a'"}]}),
    ("integer", {"type": "integer", "x-kubernetes-validations": [{"rule": "self.x == 1"}]}),
    ("list", {**_array(_STRING), "x-kubernetes-validations": [{"rule": "self.size() > 1"}]}),
    ("items", _array({**_UNBOUND, "x-kubernetes-validations": [{"rule": "self.matches('a')"}]}, None)),
    ("preserve", {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [{"rule": "self.x == 1"}]}),
    ("any-of", {"type": "string", "anyOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]}),
    ("old", _array({**_STRING, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]})),
    ("old-map", {"type": "object", "additionalProperties": {**_STRING, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}),
    ("default", {"type": "string", "default": "b", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == 'a'"}]}),
    ("int-or-string", {"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [{"rule": "self == 1"}]}),
]  # fmt: skip
_VALIDATIONS: list[Any] = [
    {"rule": "true", "message": "m"}, {"rule": "true", "message": ""}, {"rule": "true", "message": " "},
    {"rule": "true", "message": "two\nlines"}, {"rule": "two\n== lines"}, {"rule": "two\n== lines", "message": "m"},
    {"rule": "true", "messageExpression": "'a' + self.s"}, {"rule": "true", "messageExpression": "self.i"},
    {"rule": "true", "messageExpression": "none"}, {"rule": "true", "messageExpression": " "}, {"rule": "true", "messageExpression": "("},
    {"rule": "true", "message": "m", "messageExpression": "'x'"}, {"rule": "true", "reason": "FieldValueForbidden"},
    {"rule": "true", "reason": "Other"}, {"rule": "true", "reason": ""}, {"rule": "true", "reason": "FieldValueRequired"},
    {"rule": "true", "fieldPath": ".s"}, {"rule": "true", "fieldPath": "s"}, {"rule": "true", "fieldPath": ".none"},
    {"rule": "true", "fieldPath": ".o.x"}, {"rule": "true", "fieldPath": ".l[0]"}, {"rule": "true", "fieldPath": ".m['a']"},
    {"rule": "true", "fieldPath": ".m.a"}, {"rule": "true", "fieldPath": ""}, {"rule": "true", "fieldPath": ".o['x']"}, {"rule": "true", "fieldPath": ".['s']"},
    {"rule": "self == oldSelf", "optionalOldSelf": True}, {"rule": "oldSelf.hasValue()", "optionalOldSelf": True},
    {"rule": "true", "optionalOldSelf": True}, {"rule": "oldSelf.s == 'a'", "optionalOldSelf": False},
    {"message": "m"}, {}, None, {"rule": None}, {"rule": 5}, {"rule": "true", "other": 1},
]  # fmt: skip
_COSTLY = (
    "self.s.matches('a')", "self.l.all(x, x.matches('a'))", "self.l.all(x, self.l.all(y, x == y))", "self.m.all(k, k.contains('a'))",
    "self.ll.all(x, x.all(y, y == 'a'))", "self.ll.all(x, x.all(y, self.ll.all(z, z.all(w, w == y))))", "self.lo.all(x, self.lo.all(y, x.k == y.k))",
    "self.l.isSorted()", "self.s.split('').all(x, self.s.contains(x))", "self.l == self.l", "self.lo.map(x, x.k).all(y, y.startsWith('a'))",
    "self.s.replace('a', 'bb').size() > 1", "self.l.join('').matches('x')", "size(self.l) > 1",
)  # fmt: skip


def _spec(properties: Object, *validations: Any) -> Object:
    spec = {"type": "object", "properties": properties, "x-kubernetes-validations": [*validations]}
    return {"type": "object", "properties": {"spec": spec}}


def scenarios() -> Iterator[Scenario]:
    for part in range(4):
        scenario = Scenario(f"cel-compile-{part}")
        for rule in RULES[part::4]:
            scenario.post(_DRY, scenario.crd(_spec(_FIELDS, {"rule": rule})), only_failure=True)
        yield scenario
    scenario = Scenario("cel-parts")
    for validation in _VALIDATIONS:
        scenario.post(_DRY, scenario.crd(_spec(_FIELDS, validation)), only_failure=True)
    for name, schema in _PLACES:
        scenario.post(_DRY, scenario.crd(_spec({"x": schema}, {"rule": "true"})), name)
    for rule in _COSTLY:
        scenario.post(_DRY, scenario.crd(_spec(_UNBOUNDED, {"rule": rule})), only_failure=True)
    yield scenario
    scenario = Scenario("cel-root")
    for rule in ("self.metadata.name == 'a'", "self.metadata.generateName == 'a'", "self.kind == 'Foo'",
                 "self.metadata.labels == 1", "self.apiVersion == 'x'", "self.spec.s == 'a'", "self.status == 1",
                 "self.metadata.name.startsWith('a') && has(self.spec)"):  # fmt: skip
        schema = {**_spec(_FIELDS, {"rule": "true"}), "x-kubernetes-validations": [{"rule": rule}]}
        scenario.post(_DRY, scenario.crd(schema), only_failure=True)
    yield scenario
