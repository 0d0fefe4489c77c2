"""Tables and partial metadata: shape, columns, cells, what they may be asked of."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.rest.support import (
    MERGE,
    PARTIAL,
    PARTIAL_LIST,
    TABLE,
    Collection,
    failed,
    make_crd,
    version,
)
from tests.support.server import LiveServer

NAME_TEXT = "Name must be unique within a namespace. Is required when creating resources"
AGE_TEXT = "CreationTimestamp is a timestamp representing the server time"
_NUMBERS = itertools.count()


def table(collection: Collection, rest: str = "", method: str = "GET", body: Any = None) -> Any:
    answer = collection.request(method, rest, body, headers={"Accept": TABLE})
    assert answer.status in (200, 201), answer.text
    return answer.json


def test_the_shape_of_a_table(foos: Collection) -> None:
    obj = foos.create("shape", metadata={"labels": {"l": "1"}})
    document = table(foos, "/shape")
    assert list(document) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert (document["kind"], document["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert document["metadata"] == {"resourceVersion": obj["metadata"]["resourceVersion"]}
    name, age = document["columnDefinitions"]
    assert list(name) == ["name", "type", "format", "description", "priority"]
    assert (name["name"], name["type"], name["format"], name["priority"]) == (
        "Name", "string", "name", 0,
    )  # fmt: skip
    assert name["description"].startswith(NAME_TEXT)
    assert (age["name"], age["type"], age["format"], age["priority"]) == ("Age", "date", "", 0)
    assert age["description"].startswith(AGE_TEXT)
    (row,) = document["rows"]
    assert row["cells"][0] == "shape"
    assert row["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def test_lists_as_tables(foos: Collection) -> None:
    for name in ("list-1", "list-2", "list-3"):
        foos.create(name, metadata={"labels": {"in": "list"}})
    document = table(foos, "?labelSelector=in=list&limit=2")
    assert [row["cells"][0] for row in document["rows"]] == ["list-1", "list-2"]
    assert document["metadata"]["continue"]
    empty = table(foos, "?labelSelector=in=nothing")
    assert empty["rows"] == []
    assert "continue" not in empty["metadata"]
    everything = table(foos, "?limit=1")
    assert everything["metadata"]["remainingItemCount"] >= 2


def test_the_older_version_of_tables(foos: Collection) -> None:
    foos.create("beta")
    accept = TABLE.replace("v=v1", "v=v1beta1")
    document = foos.request("GET", "/beta", headers={"Accept": accept}).json
    assert document["apiVersion"] == "meta.k8s.io/v1beta1"
    assert document["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_tables_in_yaml(foos: Collection) -> None:
    foos.create("yaml")
    accept = TABLE.replace("json", "yaml")
    answer = foos.request("GET", "/yaml", headers={"Accept": accept})
    assert answer.header("content-type") == "application/yaml"
    assert "kind: Table" in answer.text


def test_rows_include_objects_as_requested(foos: Collection) -> None:
    obj = foos.create("include", spec={"a": "x"})
    for query, wanted in (
        ("", "PartialObjectMetadata"),
        ("?includeObject=", "PartialObjectMetadata"),
        ("?includeObject=Metadata", "PartialObjectMetadata"),
        ("?includeObject=Object", "Foo"),
    ):
        assert table(foos, f"/include{query}")["rows"][0]["object"]["kind"] == wanted
    assert table(foos, "/include?includeObject=Object")["rows"][0]["object"] == obj
    row = table(foos, "/include?includeObject=None")["rows"][0]
    assert row == {"cells": row["cells"], "object": None}
    text = (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Bogus": must be '
        "'Metadata', 'Object', 'None', or empty"
    )
    for rest in ("/include?includeObject=Bogus", "?includeObject=Bogus"):
        answer = foos.request("GET", rest, headers={"Accept": TABLE})
        failed(answer, 400, "BadRequest", text)


def test_a_bad_include_is_reported_after_the_write(foos: Collection) -> None:
    answer = foos.request(
        "POST", "?includeObject=Bogus", foos.obj("written"), headers={"Accept": TABLE}
    )
    assert answer.status == 400
    assert foos.request("GET", "/written").status == 200


def test_every_verb_with_an_object_can_answer_a_table(foos: Collection) -> None:
    assert table(foos, "", "POST", foos.obj("verbs"))["kind"] == "Table"
    obj = foos.get("verbs")
    assert table(foos, "/verbs", "PUT", obj)["kind"] == "Table"
    answer = foos.request("PATCH", "/verbs", {}, content_type=MERGE, headers={"Accept": TABLE})
    assert answer.json["kind"] == "Table"
    assert table(foos, "/verbs/status")["kind"] == "Table"
    assert table(foos, "/verbs", "DELETE")["kind"] == "Status"
    foos.create("collected", metadata={"labels": {"collect": "1"}})
    assert table(foos, "?labelSelector=collect=1", "DELETE")["kind"] == "Table"
    foos.create("held", metadata={"finalizers": ["ex.com/hold"]})
    assert table(foos, "/held", "DELETE")["kind"] == "Table"


# --- columns and cells -----------------------------------------------------------------------


def column(name: str, kind: str, path: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path, **more}


@pytest.fixture(scope="module")
def anything(server: LiveServer) -> Collection:
    """A kind whose spec takes any value, shown as each type of column."""
    group = "cells.ex.io"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    columns = [
        column(kind, kind, ".spec.v") for kind in ("string", "integer", "number", "boolean", "date")
    ]
    server.create_crd(
        make_crd(
            group,
            [
                version(
                    "v1",
                    storage=True,
                    schema=schema,
                    additionalPrinterColumns=columns,
                )
            ],
        )
    )
    return Collection(server, group)


def ago(**delta: float) -> str:
    moment = datetime.now(UTC) - timedelta(**delta)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("value", "string", "integer", "number", "boolean", "date"),
    [
        ("x", "x", None, None, None, "<invalid>"),
        ("", "", None, None, None, "<unknown>"),
        (3, "3", 3, 3, None, None),
        (True, "true", None, None, True, None),
        (2.7, "2.7", 2, 2.7, None, None),
        (-2.7, "-2.7", -2, -2.7, None, None),
        (100000000.5, "1.000000005e+08", 100000000, 100000000.5, None, None),
        (1e21, "1e+21", -9223372036854775808, 1e21, None, None),
        (1000000.0, "1000000", 1000000, 1000000, None, None),
        (["p", "q"], '["p","q"]', None, None, None, None),
        ({"k": "v"}, '{"k":"v"}', None, None, None, None),
        ([], "[]", None, None, None, None),
        ("2020-01-01", "2020-01-01", None, None, None, "<invalid>"),
        ("null", "null", None, None, None, "<unknown>"),
        (None, "<no value>", None, None, None, None),
    ],
)
def test_cells_by_column_type(
    anything: Collection,
    value: Any,
    string: Any,
    integer: Any,
    number: Any,
    boolean: Any,
    date: Any,
) -> None:
    name = f"cell-{next(_NUMBERS)}"
    anything.create(name, spec={"v": value})
    cells = table(anything, f"/{name}")["rows"][0]["cells"]
    assert cells == [name, string, integer, number, boolean, date]


def test_a_value_that_is_not_there_is_null(anything: Collection) -> None:
    anything.create("nothing", spec={})
    assert table(anything, "/nothing")["rows"][0]["cells"] == ["nothing"] + [None] * 5


@pytest.mark.parametrize(
    ("then", "wanted"),
    [
        ({"seconds": 90}, "9[01]s"),
        ({"minutes": 5, "seconds": 30}, "5m3[01]s"),
        ({"minutes": 45, "seconds": 10}, "45m"),
        ({"hours": 3, "minutes": 15, "seconds": 10}, "3h15m"),
        ({"hours": 3, "seconds": 10}, "3h"),
        ({"hours": 30, "seconds": 10}, "30h"),
        ({"days": 3, "hours": 4, "seconds": 10}, "3d4h"),
        ({"days": 3, "seconds": 10}, "3d"),
        ({"days": 90, "seconds": 10}, "90d"),
        ({"days": 3 * 365 + 20, "seconds": 10}, "3y20d"),
        ({"days": 3 * 365, "seconds": 10}, "3y"),
        ({"days": 9 * 365 + 100}, "9y"),
        ({"seconds": -30}, "<invalid>"),
    ],
)
def test_ages(anything: Collection, then: dict[str, float], wanted: str) -> None:
    import re

    name = f"age-{next(_NUMBERS)}"
    anything.create(name, spec={"v": ago(**then)})
    assert re.fullmatch(wanted, table(anything, f"/{name}")["rows"][0]["cells"][5])


def test_declared_columns_replace_age_and_belong_to_a_version(server: LiveServer) -> None:
    group = "columns.ex.io"
    columns = [
        column("A", "string", ".spec.a", description="mine", priority=1, format="password"),
        column("First", "string", ".spec.l[*]"),
        column("Ready", "string", '.spec.e[?(@.x=="p")].x'),
        column("Far", "string", ".spec.l[7]"),
    ]
    server.create_crd(
        make_crd(
            group,
            [version("v1", storage=True, additionalPrinterColumns=columns), version("v2")],
        )
    )
    foos = Collection(server, group)
    foos.create("a", spec={"a": "x", "l": ["p", "q"], "e": [{"x": "o"}, {"x": "p"}]})
    document = table(foos, "/a")
    definitions = document["columnDefinitions"]
    assert [item["name"] for item in definitions] == ["Name", "A", "First", "Ready", "Far"]
    assert definitions[1] == {
        "name": "A", "type": "string", "format": "password", "description": "mine", "priority": 1,
    }  # fmt: skip
    default = "Custom resource definition column (in JSONPath format): .spec.l[*]"
    assert definitions[2]["description"] == default
    assert document["rows"][0]["cells"] == ["a", "x", "p", "p", None]
    other = table(foos.at(version="v2"), "/a")
    assert [item["name"] for item in other["columnDefinitions"]] == ["Name", "Age"]


# --- partial metadata ------------------------------------------------------------------------


def test_partial_metadata(foos: Collection) -> None:
    obj = foos.create("partial", spec={"a": "x"})
    answer = foos.request("GET", "/partial", headers={"Accept": PARTIAL})
    assert answer.json == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
    assert list(answer.json) == ["kind", "apiVersion", "metadata"]
    accept = PARTIAL.replace("json", "yaml")
    answer = foos.request("GET", "/partial", headers={"Accept": accept})
    assert "kind: PartialObjectMetadata\n" in answer.text


def test_partial_lists(foos: Collection) -> None:
    foos.create("plist", metadata={"labels": {"p": "1"}})
    answer = foos.request("GET", "?labelSelector=p=1", headers={"Accept": PARTIAL_LIST})
    document = answer.json
    assert list(document) == ["kind", "apiVersion", "metadata", "items"]
    assert document["kind"] == "PartialObjectMetadataList"
    assert set(document["metadata"]) == {"resourceVersion"}
    (item,) = document["items"]
    assert (item["kind"], item["metadata"]["name"]) == ("PartialObjectMetadata", "plist")
    empty = foos.request("GET", "?labelSelector=p=2", headers={"Accept": PARTIAL_LIST})
    assert empty.json["items"] is None


def test_the_wrong_partial_form(foos: Collection) -> None:
    foos.create("wrong")
    answer = foos.request("GET", "", headers={"Accept": PARTIAL})
    text = (
        "you requested PartialObjectMetadata, but the requested object is a list "
        "(*unstructured.UnstructuredList)"
    )
    failed(answer, 406, "NotAcceptable", text)
    answer = foos.request("GET", "/wrong", headers={"Accept": PARTIAL_LIST})
    failed(answer, 500, "", "content is not a list")


def test_a_path_without_end_is_refused_with_its_crd(server: LiveServer) -> None:
    column = {"name": "X", "type": "string", "jsonPath": ".spec" + "[0]" * 40_000}
    crd = make_crd(
        "endless.ex.io", [version("v1", storage=True, additionalPrinterColumns=[column])]
    )

    answer = server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)

    assert answer.status == 422
    (cause,) = answer.json["details"]["causes"]
    assert cause["field"] == "spec.additionalPrinterColumns[0].JSONPath"
    assert cause["message"].endswith("may not have more than 4096 characters")


def test_a_path_that_fails_costs_its_own_cell(server: LiveServer) -> None:
    group = "failing.ex.io"
    columns = [
        {"name": "A", "type": "string", "jsonPath": ".spec.l[0:6:0]"},
        {"name": "B", "type": "string", "jsonPath": ".spec.l[0]"},
        {"name": "C", "type": "string", "jsonPath": ".spec.a" + "[0]" * 90},
    ]
    server.create_crd(
        make_crd(group, [version("v1", storage=True, additionalPrinterColumns=columns)])
    )
    foos = Collection(server, group)
    foos.create("one", spec={"l": ["x"], "a": "y"})

    assert table(foos, "/one")["rows"][0]["cells"] == ["one", None, "x", None]
