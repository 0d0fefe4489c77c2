"""No operation costs more than the table says: numbers that no neighbour and no clock changes.

What grew is told with the package it grew in. Less is always welcome, and told as a skipped test.
"""

from __future__ import annotations

import pytest

from instar.kube.api.encoding.json_text import encode_sorted
from tests.counts.counting import counting
from tests.counts.measuring import measured
from tests.counts.table import (
    ACCEPT,
    OF_PYTHON,
    Row,
    grown,
    limit,
    load,
    moved,
    shrunk,
    this_python,
)

TABLE = load()
ROWS: dict[str, Row] = TABLE["rows"]


@pytest.fixture(scope="module")
def found() -> dict[str, Row]:
    return measured()


@pytest.mark.parametrize("name", ROWS)
def test_no_operation_costs_more_than_the_table_allows(name: str, found: dict[str, Row]) -> None:
    if name not in found:
        pytest.skip("no etcd here")

    changes = [str(change) for change in grown(name, _comparable(ROWS[name]), found[name])]

    assert not changes, f"{changes}: make it cheaper, or take it knowingly with {ACCEPT}"


def test_the_table_is_as_low_as_it_could_be(found: dict[str, Row]) -> None:
    less = [
        str(change)
        for name, row in ROWS.items()
        if name in found
        for change in shrunk(name, _comparable(row), found[name])
    ]

    if less:
        pytest.skip(f"cheaper than the table, which {ACCEPT} would keep so: {'; '.join(less)}")


def test_every_row_has_its_reason_and_is_measured(found: dict[str, Row]) -> None:
    etcd = {name for name in ROWS if name.startswith("etcd")}

    assert {name for name, row in ROWS.items() if len(row["why"]) < 15} == set()
    assert set(ROWS) - etcd <= set(found) <= set(ROWS)


def test_one_call_more_is_seen() -> None:
    with counting() as once:
        encode_sorted({})
    with counting() as twice:
        encode_sorted({})
        encode_sorted({})

    assert (once["encodes"], twice["encodes"]) == (1, 2)
    assert twice["package:kube.api"] == 2 * once["package:kube.api"] > 0


def test_a_grown_count_is_reported_with_its_package() -> None:
    recorded = {"calls": 100, "decodes": 1, "packages": {"schema": 40, "api": 60}}
    dearer = {"calls": 106, "decodes": 1, "packages": {"schema": 46, "api": 60}}
    decoding = {"calls": 104, "decodes": 2, "packages": {"schema": 44, "api": 60}}

    assert [str(one) for one in grown("x", recorded, dearer)] == [
        "x: calls 100 → 106 (schema 40 → 46)"
    ]
    assert [str(one) for one in grown("x", recorded, decoding)] == ["x: decodes 1 → 2"]
    assert [str(one) for one in shrunk("x", dearer, recorded)] == ["x: calls 106 → 100"]
    assert moved(recorded, recorded) == ""
    assert (limit("calls", 100), limit("kept blocks", 0), limit("commits", 1)) == (105, 1, 1)


def _comparable(row: Row) -> Row:
    if TABLE["python"] == this_python():
        return row
    return {what: value for what, value in row.items() if what not in OF_PYTHON}
