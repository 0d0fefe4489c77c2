"""One webhook on everything of ref.io, and what an answer says when asking it failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.rest.support import Collection
from tests.support.admission import AdmissionHook, configuration, configured
from tests.support.server import Answer, LiveServer

FAILED = "failed to call webhook: "
INVALID = "received invalid webhook response: "


@contextmanager
def asked(place: LiveServer, hook: AdmissionHook, kind: str, **changes: Any) -> Iterator[None]:
    with configured(place, configuration(kind, hook.webhook("v.ref.io", "/v", **changes))):
        yield


def create(widgets: Collection, name: str = "x", query: str = "", **members: Any) -> Answer:
    return widgets.request("POST", query, widgets.obj(name, **members))


def failed(answer: Answer) -> str:
    """Why the call failed, of an answer that has upstream's shape."""
    told = answer.json
    opening = 'failed calling webhook "v.ref.io": '
    assert answer.status == told["code"] == 500
    assert told["reason"] == "InternalError"
    message: str = told["message"]
    assert message.startswith(f"Internal error occurred: {opening}")
    cause: str = told["details"]["causes"][0]["message"]
    assert cause == message.removeprefix("Internal error occurred: ")
    return cause.removeprefix(opening)
