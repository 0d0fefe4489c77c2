"""The default FlowSchemas of a new server: each is written once, and then its condition."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tests.support.server import live_server
from tests.support.waiting import eventually

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS = f"{GROUP}/flowschemas"
RECORDED = Path(__file__).with_name("kube_apiserver_defaults.jsonl")
"""What a new kube-apiserver 1.36.4 shows."""


def test_a_start_makes_the_default_schemas_without_a_conflict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), live_server(bootstrap_objects=True) as server:

        def conditions() -> list[str]:
            found = server.request("GET", SCHEMAS).json["items"]
            return [
                each["status"]
                for schema in found
                for each in (schema.get("status") or {}).get("conditions") or ()
            ]

        eventually(lambda: conditions() == ["False"] * 11)

    assert [record.getMessage() for record in caplog.records] == []


def test_the_default_objects_are_those_of_kube_apiserver() -> None:
    expected = [json.loads(line) for line in RECORDED.read_text().splitlines()]

    with live_server(bootstrap_objects=True) as server:

        def shown() -> list[object]:
            return [
                {
                    "kind": kind,
                    "name": item["metadata"]["name"],
                    "annotations": item["metadata"].get("annotations"),
                    "spec": item["spec"],
                }
                for kind in ("FlowSchema", "PriorityLevelConfiguration")
                for item in server.request("GET", f"{GROUP}/{kind.lower()}s").json["items"]
            ]

        eventually(lambda: len(shown()) >= len(expected))
        assert shown() == expected
