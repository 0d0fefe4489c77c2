"""Every built-in kind over the wire in protobuf, both ways: what was recorded in JSON is written as
a Go client writes it, answered in protobuf, and says the same."""

from __future__ import annotations

import json
import re
from typing import Any

from instar.kube.facts.resources import resources
from instar.kube.protobuf.envelope import decode_object, encode_object
from instar.kube.typed.reading import TypedError, read_object
from tests.builtins.comparing import differences
from tests.builtins.replay import recorded, recorders_server, send
from tests.builtins.test_recordings import EXCEPTIONS
from tests.support.builtins import needs_builtins
from tests.support.server import Answer

pytestmark = needs_builtins
PROTOBUF = "application/vnd.kubernetes.protobuf"
_ONLY_IN_JSON = {
    "pod.overheadRejected": "an empty map and none are the same in protobuf",
    "statefulset.rich": "the templates of claims do not tell their kind in protobuf",
}


_STABLE = re.compile(r"v\d+")


def _in_protobuf(row: dict[str, Any]) -> dict[str, Any] | None:
    """The same request; None for a body that protobuf cannot say."""
    body = row.get("body")
    sent = {**row, "accept": PROTOBUF}
    if not isinstance(body, dict) or row["id"] in _ONLY_IN_JSON:
        return sent if body is None else None
    obj = json.loads(json.dumps(body))
    try:
        unknown = read_object(obj, obj["apiVersion"], obj["kind"])
    except (KeyError, TypedError):
        return None
    return None if unknown else {**sent, "body": encode_object(obj), "contentType": PROTOBUF}


def _as_json(answer: Answer) -> Answer:
    shown = decode_object(answer.body) if answer.body.startswith(b"k8s\0") else answer.json
    return Answer(answer.status, answer.headers, json.dumps(shown).encode())


def test_every_kind_is_read_and_written_in_protobuf() -> None:
    wrong: dict[str, list[str]] = {}
    kinds: set[str] = set()

    with recorders_server() as server:
        for row in recorded("defaults"):
            sent = _in_protobuf(row)
            if sent is None or f"defaults {row['id']}" in EXCEPTIONS:
                send(server, row)
                continue
            answer = send(server, sent)
            found = differences(row, _as_json(answer))
            if found:
                wrong[row["id"]] = found
            elif isinstance(row["answer"], dict):
                kinds.add(row["answer"]["kind"])

    assert not wrong
    assert kinds >= {
        item.kind
        for item in resources()
        if {"create", "get"} <= set(item.verbs) and _STABLE.fullmatch(item.version)
    }
