"""Recorded requests sent again: what kube-apiserver answered, compared with what we answer.

``python -m tests.builtins.replay [PREFIX]`` prints what differs, for whoever works on it; a prefix
is that of a line: ``invalid svc``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from instar.server.registry.admission.plugins import service_networks
from instar.server.registry.controllers.controller_names import (
    CLAIM_PROTECTION,
    CLASS_PROTECTION,
    CONTROLLERS_HERE,
    DISRUPTION,
    ENDPOINT_MIRROR,
    SERVICE_RANGES,
    VOLUME_PROTECTION,
)
from tests.builtins.comparing import differences
from tests.builtins.unrecorded import CUT, NAMESPACES, UNRECORDED
from tests.support.builtins import BUILTINS
from tests.support.server import Answer, LiveServer, live_server

RECORDINGS = BUILTINS
FILES = ("defaults", "invalid", "patch")
"""In the order they were recorded in, on one server."""
_JSON, _MERGE = "application/json", "application/merge-patch+json"
TOKEN = "recorder"
_OF_A_MANAGER = {
    *(CLAIM_PROTECTION, VOLUME_PROTECTION, CLASS_PROTECTION),
    *(DISRUPTION, ENDPOINT_MIRROR, SERVICE_RANGES),
}

Replayed = dict[str, list[str]]
"""What differs, by file and id (``invalid pod.setup``)."""


def recorded(name: str) -> list[dict[str, Any]]:
    path = RECORDINGS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def recorders_server(bootstrap_objects: bool = True, **more: Any) -> Iterator[LiveServer]:
    """As it was when the recordings were made: no controller acts, and its caller is ``admin``.
    Addresses are given out from the end, where none is recorded."""
    with TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        settings = {
            "storage": "memory:",
            "collect_garbage": False,
            "bootstrap_objects": bootstrap_objects,
            "controllers": CONTROLLERS_HERE - _OF_A_MANAGER,
        }
        from_the_end = mock.patch.object(service_networks, "shuffled", reversed)
        with from_the_end, live_server(**settings, **more, token_file=tokens) as server:
            controllers = server.running.machinery.controllers
            assert controllers.namespaces is not None
            server.run(controllers.namespaces.stop())
            server.run(controllers.flow_schemas.stop())
            for name in NAMESPACES:
                server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            yield server


def send(server: LiveServer, row: dict[str, Any]) -> Answer:
    for method, path, wanted in UNRECORDED.get(row["id"], ()):
        server.request(method, path, wanted, content_type=_MERGE if method == "PATCH" else _JSON)
    method = row.get("method", "GET")
    media = row.get("contentType", _JSON) if method != "GET" else _JSON
    return server.request(
        method,
        row["path"],
        CUT.get(row["id"], row.get("body")),
        content_type=media,
        headers={"Accept": row["accept"]} if "accept" in row else {},
        token=TOKEN,
    )


def replay(names: Sequence[str] = FILES) -> Replayed:
    """Whole files one after the other on one server."""
    with recorders_server() as server:
        return {
            f"{name} {row['id']}": differences(row, send(server, row))
            for name in names
            for row in recorded(name)
        }


def main() -> None:
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    found = {line: texts for line, texts in replay().items() if line.startswith(prefix)}
    for line, texts in found.items():
        if texts:
            print(line, *texts[:5], sep="\n    ")
    for name in FILES:
        lines = [texts for line, texts in found.items() if line.startswith(f"{name} ")]
        print(f"{name}: {sum(not texts for texts in lines)} of {len(lines)}")


if __name__ == "__main__":
    main()
