"""Requests that look at every object of a large collection, while /livez is asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.robust.conftest import THINGS
from tests.robust.stored_files import multiplied, prepared
from tests.robust.victim import Victim

COUNT = 40_000
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
WATCH = "?watch=1&timeoutSeconds=2&resourceVersion=0"
ASKED = {
    "a set of labels": ("?labelSelector=a+notin+(1,2)", "application/json"),
    "a label that is not": ("?labelSelector=a!=1", "application/json"),
    "names": ("?fieldSelector=metadata.name!=x", "application/json"),
    "a Table": ("", TABLE),
    "metadata": ("", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
    "a watch of everything": (WATCH, "application/json"),
    "a watch of some": (f"{WATCH}&labelSelector=a!=1", "application/json"),
    "a watch as Tables": (WATCH, TABLE),
}


@pytest.fixture(scope="module", params=["memory", "disk"])
def crowded(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("crowded")
    path = prepared(folder, "seed")
    multiplied(path, "seed", COUNT)
    victim = Victim(folder, "--storage", f"sqlite:{path}", "--values", request.param)
    yield victim
    victim.stop()


@pytest.mark.parametrize("name", ASKED)
def test_other_requests_do_not_wait(crowded: Victim, name: str) -> None:
    query, accept = ASKED[name]
    with crowded.watched():
        answer = crowded.request("GET", THINGS + query, headers={"Accept": accept})
    assert answer.status == 200
    assert len(answer.body) > COUNT * 100
