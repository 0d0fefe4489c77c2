"""What a write must respect where ``/scale`` is declared."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.api.crd import ScalePaths
from instar.kube.schema.scale import scale_errors

PATHS = ScalePaths(".spec.n", ".status.n", ".status.sel")


def errors(spec: Any = None, status: Any = None, *, status_only: bool = False) -> list[str]:
    obj = {"spec": {} if spec is None else spec, "status": {} if status is None else status}
    return [str(error) for error in scale_errors(obj, PATHS, status_only=status_only)]


@pytest.mark.parametrize("spec", [{}, {"n": None}, {"n": 0}, {"n": 2_147_483_647}])
def test_integers_and_absent_values_are_accepted(spec: Any) -> None:
    assert errors(spec, {"n": 1, "sel": "a=b"}) == []


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (-1, "-1: should be a non-negative integer"),
        (2**31, "2147483648: should be less than or equal to 2147483647"),
        ("x", "0: .spec.n accessor error: x is of the type string, expected int64"),
        (True, "0: .spec.n accessor error: true is of the type bool, expected int64"),
        (1.5, "0: .spec.n accessor error: 1.5 is of the type float64, expected int64"),
    ],
)
def test_a_replica_count_that_is_not_an_integer_is_refused(value: Any, detail: str) -> None:
    assert errors({"n": value}) == [f".spec.n: Invalid value: {detail}"]


def test_a_selector_is_a_string() -> None:
    text = ".status.sel accessor error: 5 is of the type int64, expected string"

    assert errors(status={"sel": 5}) == [f'.status.sel: Invalid value: "": {text}']


def test_a_write_of_the_status_is_not_answerable_for_the_spec() -> None:
    assert errors({"n": -1}, {"n": -1}, status_only=True) == [
        ".status.n: Invalid value: -1: should be a non-negative integer"
    ]


@pytest.mark.parametrize(
    ("spec", "shown"),
    [("text", "text is of the type string"), ([], "[] is of the type []interface {}")],
)
def test_a_spec_that_is_not_an_object_is_reported_in_go_words(spec: Any, shown: str) -> None:
    found = errors(spec, {"n": 1, "sel": "a=b"})

    text = f"Invalid value: 0: .spec.n accessor error: {shown}, expected map[string]interface{{}}"
    assert found == [f".spec.n: {text}"]
