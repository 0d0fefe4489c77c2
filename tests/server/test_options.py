"""Options that need a right of their own are seen however they are spelt."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from instar.server.http.messages import Request
from instar.server.registry.resources.serving import Serving
from instar.server.registry.verbs.delete_options import UNREADABLE
from instar.server.rest.options import delete_options

SERVING = cast(Serving, SimpleNamespace(group="ex.io"))
ESCAPED = "\\u0069" + UNREADABLE[1:]


@pytest.mark.parametrize(
    ("media", "body", "asked"),
    [
        ("application/json", f'{{"{UNREADABLE}": true}}', True),
        ("application/json", f'{{"{ESCAPED}": true}}', True),
        ("application/yaml", f'"{ESCAPED}": true', True),
        ("application/json", f'{{"{UNREADABLE}": false}}', False),
        ("application/json", "{}", False),
    ],
)
def test_an_unsafe_delete_is_recognised_by_the_meaning_of_the_body(
    media: str, body: str, asked: bool
) -> None:
    headers: dict[bytes, bytes] = {b"content-type": media.encode()}
    request = Request("DELETE", "/", cast(Any, {}), headers, body.encode())
    assert delete_options(request, SERVING).unreadable is asked
