"""A write that was carried out although its answer got lost is told as 503, and not done again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.wire.storage.store import Unavailable, Write
from tests.replicas.client import JSON_PATCH, MERGE_PATCH
from tests.replicas.resources import crd, note, path
from tests.support.server import LiveServer

GROUP = "doubt.io"


@pytest.fixture
def doubting(fresh_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    """Every commit to an object named ``doubtful`` works and is answered as unavailable."""
    store = fresh_server.running.machinery.backend.store
    commit = store.commit

    async def answer_lost(write: Write) -> int:
        revision = await commit(write)
        if write.key.endswith("/doubtful"):
            raise Unavailable("it is not known whether this was written")
        return revision

    fresh_server.create_crd(crd(GROUP))
    created = fresh_server.request("POST", path(GROUP), note(GROUP, "doubtful", tokens=[]))
    assert created.status == 201
    monkeypatch.setattr(store, "commit", answer_lost)
    yield fresh_server
    monkeypatch.undo()


APPEND = [{"op": "add", "path": "/spec/tokens/-", "value": "x"}]


@pytest.mark.parametrize(
    ("method", "body", "media"),
    [
        ("PATCH", APPEND, JSON_PATCH),
        ("PATCH", {"spec": {"last": "x"}}, MERGE_PATCH),
        ("DELETE", None, "application/json"),
    ],
)
def test_it_is_done_once_and_left_to_the_client(
    doubting: LiveServer, method: str, body: Any, media: str
) -> None:
    where = path(GROUP, "doubtful")
    answer = doubting.request(method, where, body, content_type=media)
    assert (answer.status, answer.header("retry-after")) == (503, "1")
    found = doubting.request("GET", where)
    if method == "DELETE":
        assert found.status == 404
    elif media == JSON_PATCH:
        assert found.json["spec"]["tokens"] == ["x"]
    else:
        assert found.json["spec"]["last"] == "x"
        assert found.json["metadata"]["generation"] == 2
