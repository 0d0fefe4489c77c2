"""Whatever lies in an object, a rule ends in a finding, never in a Python error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.kube.schema.cel_rules.evaluate import CelProgram
from tests.cel.support import program, spec

ITEM = {
    "type": "object",
    "nullable": True,
    "properties": {
        "k": {"type": "string", "nullable": True},
        "n": {"type": "integer", "nullable": True},
        "when": {"type": "string", "format": "date-time", "nullable": True},
    },
}
SCHEMA = {
    "i": {"type": "array", "items": {"type": "integer", "nullable": True}},
    "s": {"type": "array", "items": {"type": "string", "nullable": True}},
    "o": {"type": "array", "items": ITEM},
    "t": {
        "type": "array",
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "nullable": True},
    },
    "m": {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
    "d": {"type": "array", "items": {"type": "string", "format": "duration", "nullable": True}},
    "x": {"x-kubernetes-int-or-string": True},
}
RULES = [
    "self.i.all(x, x + 1 > 0)",
    "self.i.all(x, -x < 5 || x == 3)",
    "self.i.sum() > 3",
    "self.i.min() > 3 || self.i.isSorted()",
    "self.i.sort().size() > 1",
    "self.s.all(x, x.startsWith('a') && x.size() < 3)",
    "self.s.exists(x, x.matches('a+') || x.lowerAscii() == 'a')",
    "self.s.join(',').size() > 2",
    "self.s.map(x, x + 'a').size() > 0 && self.s.distinct().size() > 0",
    "self.s.exists(x, quantity(x).isInteger() || isIP(x) || url(x).getHost() == x)",
    "self.o.all(x, x.k == 'a' || x.n > 1)",
    "self.o.exists(x, has(x.k) && x.?n.orValue(1) > 0)",
    "self.o.exists_one(x, x.when.getFullYear() > 2000)",
    "self.o == self.o && self.o.all(x, x in self.o)",
    "self.o.sortBy(x, x.n).size() > 0",
    "(true ? self.o[0] : dyn({'k': 1})).k == 'a'",
    "(false ? self.o[0] : dyn({'k': 1})).k == 'a'",
    "self.t + ['z'] == self.t && sets.contains(self.t, ['z'])",
    "self.m.all(k, self.m[k] > 1) && self.m.transformMap(k, v, v * 2).size() > 0",
    "self.m == {'a': 1} || self.m.a == 1",
    "self.d.all(x, x > duration('1s')) && self.d.sum() > duration('1s')",
    "self.x + 1 == 2 || self.x == 'a' || self.x.startsWith('a')",
    "'%s %d'.format([dyn(self.s), self.i[0]]).size() > 3",
    "self.i.first().orValue(1) + self.i[?1].orValue(2) > 0",
    "oldSelf.i == self.i && oldSelf.o.size() <= self.o.size()",
]
TEXT = st.none() | st.text("ab1.:/", max_size=4)
NUMBER = st.none() | st.integers(-3, 3)
OBJECT = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "k": TEXT,
        "n": NUMBER,
        "when": st.none() | st.sampled_from(["2020-01-01T00:00:00Z", "2020-01-01t00:00:00z"]),
    },
)
VALUE = st.fixed_dictionaries(
    {},
    optional={
        "i": st.lists(NUMBER, max_size=3),
        "s": st.lists(TEXT, max_size=3),
        "o": st.lists(OBJECT, max_size=3),
        "t": st.lists(TEXT, max_size=3, unique=True),
        "m": st.dictionaries(st.sampled_from("abc"), NUMBER, max_size=2),
        "d": st.lists(st.none() | st.sampled_from(["1s", "1 day", "zz"]), max_size=2),
        "x": st.integers() | st.text("ab", max_size=2),
    },
)


@pytest.fixture(scope="module")
def everything() -> CelProgram:
    return program(spec(SCHEMA, **{"x-kubernetes-validations": [{"rule": r} for r in RULES]}))


def test_the_rules_compile(everything: CelProgram) -> None:
    found = everything.evaluate({"spec": {}}, None).errors

    assert [str(error) for error in found if "compile" in error.detail] == []


@given(new=VALUE, old=st.none() | VALUE)
@settings(max_examples=300, deadline=None)
def test_nothing_escapes(everything: CelProgram, new: Any, old: Any) -> None:
    before = None if old is None else {"spec": old}

    outcome = everything.evaluate({"spec": new}, before)

    assert all(error.field == "spec" for error in outcome.errors)


@given(new=VALUE)
@settings(max_examples=50, deadline=None)
def test_nothing_is_refused_that_did_not_change_but_errors(
    everything: CelProgram, new: Any
) -> None:
    outcome = everything.evaluate({"spec": new}, {"spec": new})

    assert all("evaluating rule" in e.detail or "overload" in e.detail for e in outcome.errors)
