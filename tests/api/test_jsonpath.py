"""Printer columns' JSONPath."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.api.jsonpath import JsonPathError, JsonPathTooLong, compile_path
from tests.support.counting import calls_of

OBJECT: dict[str, Any] = {
    "spec": {"a": 1, "l": [{"x": "p"}, {"x": "q"}], "d.k": "dotted", "m": {"one": 1}},
    "status": {
        "conditions": [
            {"type": "Synced", "status": "False", "n": 1},
            {"type": "Ready", "status": "True", "n": 2},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.a", [1]),
        (".spec.missing", []),
        (".spec.l[*].x", ["p", "q"]),
        (".spec.l[1].x", ["q"]),
        (".spec.l[-1].x", ["q"]),
        (".spec.l[0:1].x", ["p"]),
        (".spec.l[7].x", []),
        (".spec['d.k']", []),
        (".spec['m']['one']", [1]),
        (".spec.d\\.k", ["dotted"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        (".status.conditions[?(@.n>1)].type", ["Ready"]),
        (".status.conditions[?(@.absent)].type", []),
        ("..x", ["p", "q"]),
        (".spec.m.*", [1]),
    ],
)
def test_matches_come_in_document_order(path: str, found: list[Any]) -> None:
    assert list(compile_path(path)(OBJECT)) == found


@pytest.mark.parametrize(
    "path",
    [".a[", ".a[b]", ".a[ 0 ]", ".a[1:x]", ".a....b", ".a..*", '.a["x"]', ".a[?(@.x==&)]", ".a\n"],
)
def test_a_bad_path_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        compile_path(path)


@pytest.mark.parametrize(
    "path",
    [
        ".spec.l[7].x",
        ".spec.l[0:7].x",
        ".spec.l[0:2:0].x",
        ".spec.l[1:0].x",
        ".spec.a[0]",
        ".spec.m[?(@.x)]",
        ".spec.l[?(@.x==1)]",
        ".spec.l[?(@.x<>1)]",
        ".spec.l[?(@.x==y)]",
        "spec.a",
    ],
)
def test_a_path_that_fails_on_an_object_finds_nothing(path: str) -> None:
    assert compile_path(path)(OBJECT) == []


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.l[?(@.x[0])].x", ["p", "q"]),
        (".spec.l['0','1'].x", []),
        (".spec.l[0,1,0].x", ["p", "q", "p"]),
        (".spec.l[].x", ["p"]),
        (".spec.m.one}{.spec.a", [1]),
        (".spec.m.one}{.spec.a[0]", []),
        ('.spec "said"', ["said"]),
        (".spec 'a\\x41\\n'", ["aA\n"]),
    ],
)
def test_quirks_are_upstreams(path: str, found: list[Any]) -> None:
    assert compile_path(path)(OBJECT) == found


@pytest.mark.parametrize("path", [".spec" + "[0]" * 40_000, ".a" * 101, ".s[?(" + " " * 20_000])
def test_a_path_without_end_is_refused_at_once(path: str) -> None:
    with pytest.raises(JsonPathTooLong):
        compile_path(path)


SIGNS = st.text(alphabet=".[]()?@$*:,'\"{}=!<> \\-+0123xaé\n", max_size=40)


@given(SIGNS)
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        find = compile_path(f".spec{text}")
    except JsonPathError:
        return

    assert isinstance(find(OBJECT), list)


def test_descents_do_not_multiply() -> None:
    """Without a bound the values found would be as many as there are ways to each."""
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": deep}

    found = compile_path("..a" * 50)(deep)

    assert len(found) <= 2 * 200
    fewer = calls_of(lambda: compile_path("..a" * 25)(deep))
    assert calls_of(lambda: compile_path("..a" * 50)(deep)) < 3 * fewer


def test_work_without_end_finds_nothing() -> None:
    wide = {"a": [[1, 2]] * 300_000}

    assert compile_path(".a" + "[*]" + "..[*]" * 20)(wide) == []
