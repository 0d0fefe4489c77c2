"""The default FlowSchemas of a new server: each is written once, and then its condition."""

from __future__ import annotations

import logging

import pytest

from tests.support.server import live_server
from tests.support.waiting import eventually

SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"


def test_a_start_makes_the_default_schemas_without_a_conflict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), live_server(furniture=True) as server:

        def conditions() -> list[str]:
            found = server.request("GET", SCHEMAS).json["items"]
            return [
                each["status"]
                for schema in found
                for each in (schema.get("status") or {}).get("conditions") or ()
            ]

        eventually(lambda: conditions() == ["False"] * 13)

    assert [record.getMessage() for record in caplog.records] == []
