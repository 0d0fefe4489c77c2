"""CRDs that are made to be costly: no small object holds the event loop, refusals are bounded, and
a schema that would take long to compile is refused before any work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instar.base import limits
from instar.kube.crds.validation.schema_size import schema_size_errors
from instar.kube.crds.validation.unsupported_schema import nodes
from tests.robust.hostile_schemas import hostile_schema, hostile_value
from tests.robust.test_amplification import CRDS, body, crd
from tests.support.server import LiveServer, live_server

HELD_SECONDS = 0.1
_numbers = count()


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        running.running.machinery.watchdog._threshold = HELD_SECONDS
        yield running


@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_no_small_object_holds_the_loop_whatever_its_schema(server: LiveServer, seed: int) -> None:
    random, name = Random(seed), f"hostile{next(_numbers)}"
    schema = hostile_schema(random)
    server.create_crd(crd(name, schema))
    watchdog = server.running.machinery.watchdog
    watchdog.held.clear()
    place = f"/apis/amp.io/v1/{name}s"

    for _ in range(2):
        obj = body(name, hostile_value(random, schema))
        if len(json.dumps(obj)) > limits.LOOP_BYTES:
            continue
        for answer in (
            server.request("POST", place, obj),
            server.request("PATCH", f"{place}/a", obj, content_type="application/merge-patch+json"),
            server.request("GET", place),
        ):
            assert answer.status < 500
            assert len(answer.text) < 4 * limits.MAX_REFUSAL + limits.MAX_STORED

    assert not watchdog.held
    server.request("DELETE", f"{CRDS}/{name}s.amp.io")


def _versions(*schemas: Any) -> dict[str, Any]:
    return {"versions": [{"schema": {"openAPIV3Schema": schema}} for schema in schemas]}


def _branches(number: int) -> dict[str, Any]:
    return {"type": "integer", "anyOf": [{"minimum": n} for n in range(number)]}


def test_a_schema_of_too_many_parts_is_refused_before_any_other_check(server: LiveServer) -> None:
    answer = server.request("POST", CRDS, crd("large", _branches(limits.MAX_SCHEMA_NODES)))

    assert answer.status == 422
    assert answer.json["details"]["causes"] == [
        {
            "reason": "FieldValueTooMany",
            "message": "Too many: 50001: must have at most 50000 items",
            "field": "spec.validation.openAPIV3Schema",  # upstream names it so, too
        }
    ]


def test_a_stored_schema_that_is_too_large_may_stay_but_not_change() -> None:
    large = _branches(limits.MAX_SCHEMA_NODES)
    stored = _versions(large)

    assert schema_size_errors(_versions({}, large), stored) == []
    assert len(schema_size_errors(_versions({**large, "nullable": True}), stored)) == 1
    assert schema_size_errors(_versions(_branches(limits.MAX_SCHEMA_NODES - 1))) == []


def test_every_part_of_a_schema_is_walked_once_and_in_order() -> None:
    schema = {
        "properties": {"a": {"items": {"title": "1"}, "title": "0"}, "b": {"title": "2"}},
        "additionalProperties": {"title": "3"},
        "allOf": [{"not": {"title": "5"}, "title": "4"}, {"title": "6"}],
    }

    assert [node.get("title") for node in nodes(schema)] == [None, *"0123456"]
