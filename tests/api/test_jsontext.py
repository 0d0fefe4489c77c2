"""JSON as Go writes and reads it."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.api.encoding.go_json_errors import syntax_error
from instar.kube.api.encoding.json_text import decode, duplicate_keys, encode, encode_sorted

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
documents = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(documents)
def test_written_json_is_read_back_unchanged(value: Any) -> None:
    assert decode(encode_sorted(value)) == value


@given(st.dictionaries(st.text(), scalars))
def test_keys_are_sorted_and_html_is_escaped(value: dict[str, Any]) -> None:
    text = encode_sorted(value)
    assert list(json.loads(text)) == sorted(value, key=lambda key: key.encode())
    assert not set(b"<>&") & set(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, b"1"),
        (1e3, b"1000"),
        (2.7, b"2.7"),
        (1e21, b"1e+21"),
        (1.5e-7, b"1.5e-7"),
        (123456789012345678901234567890, b"1.2345678901234568e+29"),
        (9223372036854775807, b"9223372036854775807"),
        (9223372036854775808, b"9223372036854776000"),
        (18446744073709551615, b"18446744073709552000"),
    ],
)
def test_numbers_are_spelled_as_go_spells_them(value: Any, text: bytes) -> None:
    assert encode({"a": decode(json.dumps(value).encode())}) == b'{"a":' + text + b"}"


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (b'{"a":1,"b":{"a":2}}', []),
        (b'{"a":1,"a":2}', ["a"]),
        (b'{"spec" : {"a" : 1, "a" : 2}}', ["spec.a"]),
        (b'{"l":[{"x":1,"x":2},{"x":1}]}', ["l[0].x"]),
        (b'{"a":"\\":\\":","b":1,"b":2}', ["b"]),
        (b'{"a":"\\u0022:","b":1,"b":2}', ["b"]),
        (b'{"a":"\\u003a","b":1,"b":2}', ["b"]),
        (b'{"a":"\\u003A","b":1,"b":2}', ["b"]),
        (b'{"\\u003a":1,":":2}', [":"]),
        (b'{"a":"\\u003a"}', []),
        (b'{"a\\n:":"x: y", "b"\n:\t1}', []),
    ],
)
def test_repeated_keys_are_named_by_path(text: bytes, paths: list[str]) -> None:
    assert duplicate_keys(text, json.loads(text)) == paths


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"a":', "unexpected end of JSON input"),
        (b"{bad", "invalid character 'b' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"{}{}", "invalid character '{' after top-level value"),
        (b"tru", "unexpected end of JSON input"),
        (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
        (b'"\n"', "invalid character '\\n' in string literal"),
        (b'"\\q"', "invalid character 'q' in string escape code"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b"[" * 2000 + b"]" * 2000, "exceeded max depth"),
        (b'{"a":"\\ud800"}', "invalid surrogate pair in string literal"),
        (b'{"a":1e999}', "json: cannot unmarshal number into Go value of type float64"),
    ],
)
def test_broken_json_is_described_in_gos_words(text: bytes, sentence: str) -> None:
    assert syntax_error(text) == sentence


@pytest.mark.parametrize("length", [100, 100_000])
def test_a_repeated_key_is_found_in_a_body_of_any_length(length: int) -> None:
    text = b'{"a":"%b","b":1,"b":2}' % (b":" * length)
    assert duplicate_keys(text, decode(text)) == ["b"]


@pytest.mark.parametrize("many", [b":", b"[", b"{"])
def test_the_scan_cost_does_not_depend_on_the_content_of_a_text(many: bytes) -> None:
    def seconds(character: bytes) -> float:
        text, took = b'{"a":"%b"}' % (character * 1_000_000), []
        for _ in range(5):
            began = process_time()
            duplicate_keys(text, decode(text))
            took.append(process_time() - began)
        return min(took)

    assert seconds(many) < 10 * seconds(b"x")
