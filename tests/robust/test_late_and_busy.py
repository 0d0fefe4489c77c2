"""An answer that is found, but too late or with nobody free to write it, is still an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from instar.base import offload
from instar.base.errors import Invalid, TooManyRequests
from instar.server.http import compress
from instar.server.http.messages import Request, Response
from instar.server.rest import error_responses
from tests.robust.conftest import CRDS, GROUP
from tests.robust.victim import Victim
from tests.support import crds


def asked(**headers: str) -> Request:
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return Request("GET", "/api", {}, named, b"")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(work: Callable[..., Any], *arguments: Any) -> Any:
        raise TooManyRequests("too many large requests are being worked on")

    monkeypatch.setattr(offload, "run_in_thread", refuse)


@pytest.mark.usefixtures("full")
def test_a_large_refusal_becomes_429_when_no_thread_is_free() -> None:
    response = asyncio.run(error_responses.render_error(Invalid("x" * 100_000), asked()))
    assert response.status == 429


@pytest.mark.usefixtures("full")
def test_a_large_answer_is_sent_as_it_is_where_no_thread_is_free() -> None:
    body = b"x" * (compress.LEAST + 1)
    response = Response(200, (body,))
    asyncio.run(compress.compress(asked(accept_encoding="gzip"), response))
    assert response.chunks == (body,)


def test_a_deadline_that_passes_while_a_long_refusal_is_written(victim: Victim) -> None:
    """The refusal quotes the schema, which takes longer than there is time."""
    wrong = {f"f{at}": {"type": "string", "default": 1} for at in range(3000)}
    crd = crds.crd(
        crds.version("v1", crds.fields(spec=crds.fields(**wrong))),
        group=f"late.{GROUP}",
        plural="lates",
        kind="Late",
    )
    with victim.watched():
        for timeout in ("1ms", "30ms", "100ms", "300ms"):
            answer = victim.request("POST", f"{CRDS}?timeout={timeout}", crd)
            assert answer.status in (422, 504), answer.text[:300]
