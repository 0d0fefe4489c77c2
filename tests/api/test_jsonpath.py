"""Printer columns' JSONPath."""

from __future__ import annotations

from typing import Any

import pytest

from instar.api.jsonpath import JsonPathError, compile_path

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
        (".spec['d.k']", ["dotted"]),
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


@pytest.mark.parametrize("path", [".a[", ".a[b]", "a.b", ".a[?(@.x==y)]", ".a..", ".a[1:x]"])
def test_a_bad_path_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        compile_path(path)
