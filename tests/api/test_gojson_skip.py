"""Large broken JSON gets the same sentence as small, without being read twice byte by byte."""

from __future__ import annotations

import json

import orjson
import pytest

from instar.kube.api.encoding.go_json_errors import syntax_error

LARGE = json.dumps([{"a": 'x"y\\', "b": [1, {"c": "]"}], "d": {"e": "{"}}] * 4000).encode()


@pytest.mark.parametrize("tail", [b"x", b"}", b",]", b',{"a" 1}]', b',"unended', b",01]", b""])
@pytest.mark.parametrize("wrap", [False, True])
def test_where_the_parser_gave_up_does_not_change_the_sentence(tail: bytes, wrap: bool) -> None:
    text = LARGE[:-1] + tail
    if wrap:
        text = b'{"k":' + text
    with pytest.raises(orjson.JSONDecodeError) as refusal:
        orjson.loads(text)
    assert syntax_error(text, refusal.value.pos) == syntax_error(text)
