"""YAML means what Go's library makes of it: the table is the library's, learnt from go-yaml."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from instar.base.limits import MAX_DEPTH
from instar.kube.api.encoding.go_yaml_scalars import YamlError, go_g
from instar.kube.api.encoding.json_text import TooDeep
from instar.kube.api.encoding.yaml_text import read_yaml, write_yaml

SCALARS: dict[str, Any] = {
    # words
    "y": True, "Y": True, "yes": True, "Yes": True, "YES": True, "on": True, "On": True,
    "ON": True, "true": True, "True": True, "TRUE": True, "n": False, "N": False, "no": False,
    "No": False, "NO": False, "off": False, "Off": False, "OFF": False, "false": False,
    "False": False, "FALSE": False, "~": None, "null": None, "Null": None, "NULL": None,
    "yEs": "yEs", "tRUE": "tRUE", "nULL": "nULL", "oN": "oN", "none": "none", "nil": "nil",
    # integers
    "0": 0, "1": 1, "-1": -1, "+1": 1, "12": 12, "-0": 0, "00": 0, "010": 8, "-010": -8,
    "0o14": 12, "0O14": 12, "-0o14": -12, "0x1F": 31, "0X1f": 31, "-0x1F": -31, "+0x1F": 31,
    "0b101": 5, "0B101": 5, "-0b101": -5, "0b-101": -5, "1_000": 1000, "1__0": 10, "0x_1F": 31,
    "0b1_01": 5, "9223372036854775807": 9223372036854775807,
    "-9223372036854775808": -9223372036854775808, "18446744073709551615": 1.8446744073709552e19,
    "99999999999999999999": 1e20, "0xFFFFFFFFFFFFFFFF": 1.8446744073709552e19,
    "-0xFFFFFFFFFFFFFFFF": "-0xFFFFFFFFFFFFFFFF", "0777777777777777777777777": 7.777777777777778e23,
    # neither
    "_1": "_1", "0x": "0x", "0b": "0b", "0b102": "0b102", "0o8": "0o8", "0xG": "0xG", "1a": "1a",
    "--1": "--1", "+-1": "+-1", "+": "+", "1-1": "1-1", "1,000": "1,000", "1/2": "1/2",
    # floats
    "1.5": 1.5, "-1.5": -1.5, "+1.5": 1.5, "1.": 1, "1.0": 1, ".5": 0.5, "-.5": -0.5, "+.5": 0.5,
    "1e3": 1000, "1E3": 1000, "1e+3": 1000, "1e-3": 0.001, "1.5e3": 1500, ".5e1": 5, "08": 8,
    "09.5": 9.5, "0e0": 0, "-0.0": 0, "1_0.5": 10.5, ".5_5": 0.55, "1e400": "1e400",
    "-1e400": "-1e400", "1e-400": 0, "1e21": 1e21, "1e18": 10**18, "0x1p4": "0x1p4", "1e": "1e",
    "e3": "e3", "1.5.2": "1.5.2", "._5": "._5", "..": "..", ".e1": ".e1", ".5x": ".5x",
    ".infinity": ".infinity", "inf": "inf", "nan": "nan", "NaN": "NaN", "Infinity": "Infinity",
    # base 60 and times
    "12:30:45": "12:30:45", "1:30": "1:30", "-1:30": "-1:30", "190:20:30.15": "190:20:30.15",
    "2001-01-01": "2001-01-01", "2001-1-1": "2001-1-1",
    "2001-12-14T21:59:43Z": "2001-12-14T21:59:43Z", "2001-13-45": "2001-13-45",
    # others
    "=": "=", "<<": "<<", "a b": "a b", "-x": "-x", "?x": "?x", ":x": ":x", "1.2.3.4": "1.2.3.4",
    "10m": "10m", "1Gi": "1Gi", "0.5Gi": "0.5Gi", "v1": "v1", "1e3m": "1e3m",
    # tags and quotes
    "!!str 12": "12", "!!int 12": 12, "!!int '12'": 12, "!!float 12": 12, "!!float 1.5": 1.5,
    "!!bool y": True, "!!null ''": None, "!!str": "", "!!binary aGk=": "hi", "!foo 12": "12",
    "! 12": "12", "'12'": "12", '"y"': "y", "''": "", "!!timestamp 2001-01-01": "2001-01-01",
}  # fmt: skip


@pytest.mark.parametrize("text", SCALARS)
def test_a_scalar_means_what_go_reads(text: str) -> None:
    value, duplicates = read_yaml(f"a: {text}\n".encode())
    assert (value["a"], type(value["a"])) == (SCALARS[text], type(SCALARS[text]))
    assert not duplicates


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{<<: 1}", "yaml: map merge requires map or sequence of maps as the value"),
        ("{<<: [1]}", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: &a [{b: 1}]\nc: {<<: *a}",
         "yaml: map merge requires map or sequence of maps as the value"),
        ("!!bool foo", "yaml: cannot decode !!str `foo` as a !!bool"),
        ('!!int ""', "yaml: cannot decode !!null `` as a !!int"),
        ('!!float ""', "yaml: cannot decode !!null `` as a !!float"),
        ("!!int 1.5", "yaml: cannot decode !!float `1.5` as a !!int"),
        ("!!timestamp x", "yaml: cannot decode !!str `x` as a !!timestamp"),
        ("!!binary '*'", "yaml: !!binary value contains invalid base64 data"),
        (".inf", "json: unsupported value: +Inf"),
        ("-.inf", "json: unsupported value: -Inf"),
        (".nan", "json: unsupported value: NaN"),
        ("a: *b", "yaml: unknown anchor 'b' referenced"),
        ("a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        ("a: 'b", "yaml: found unexpected end of stream"),
        ("a:\n b: 1\n  c: 2", "yaml: line 3: mapping values are not allowed in this context"),
        ("%YAML 1.2\n---\na: 1", "yaml: found incompatible YAML document"),
        ("~: 1", "unsupported map key of type: %!s(<nil>), key: <nil>"),
        ("\x01", "yaml: control characters are not allowed"),
    ],
)  # fmt: skip
def test_documents_that_go_refuses_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(YamlError) as refusal:
        read_yaml(text.encode())
    assert str(refusal.value) == sentence


def test_of_several_documents_the_first_is_read() -> None:
    assert read_yaml(b"a: 1\n---\nb: [\n") == ({"a": 1}, [])
    assert read_yaml(b"---\na: 1\n...\nb: [\n") == ({"a": 1}, [])


def test_keys_become_text() -> None:
    document, _ = read_yaml(b"{y: 1, 0x10: 2, 1.50: 3, 2001-01-01: 4, 1e20: 5}")
    assert document == {"true": 1, "16": 2, "1.5": 3, "2001-01-01": 4, "1e+20": 5}


def test_repeated_keys_are_reported_with_the_line_of_their_value() -> None:
    document, duplicates = read_yaml(b"a: 1\nb: 2\na:\n  c: 3\n1: x\n1: z\n")
    assert document == {"a": {"c": 3}, "b": 2, "1": "z"}
    assert duplicates == [
        'line 4: key "a" already set in map',
        "line 6: key 1 already set in map",
    ]


def test_merged_maps_are_in_the_order_of_the_text() -> None:
    text = b"x: &x {a: 1, b: 1}\nz: &z {a: 2, c: 2}\nm:\n  <<: [*x, *z]\n  b: 3\n"
    document, duplicates = read_yaml(text)
    assert document["m"] == {"a": 1, "b": 3, "c": 2}
    assert duplicates == [
        'line 4: key "a" already set in map',
        'line 5: key "b" already set in map',
    ]
    assert read_yaml(b'{"<<": 1}')[0] == {"<<": 1}, "a quoted key is a key"


def test_an_alias_is_a_copy() -> None:
    document, _ = read_yaml(b"a: &a {l: [1]}\nb: *a\n")
    document["a"]["l"].append(2)
    assert document["b"] == {"l": [1]}


BOMBS = {
    "aliases": "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)),
    "merged": "a0: &a0 {k0: 1, k1: 1, k2: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12)),
    "one long text": f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 10_000}]\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    with pytest.raises(YamlError, match="document contains excessive aliasing"):
        read_yaml(BOMBS[name].encode())


def test_nesting_is_bounded_also_through_aliases() -> None:
    half = MAX_DEPTH // 2 + 1
    deep = "[" * half + "]" * half
    assert read_yaml(f"a: {deep}\n".encode())
    for text in ("[" * 100_000, "- " * 100_000, f"a: &a {deep}\nb: {'[' * half}*a{']' * half}\n"):
        with pytest.raises(TooDeep):
            read_yaml(text.encode())


def test_tag_directives_are_few() -> None:
    with pytest.raises(YamlError, match="too many %TAG"):
        read_yaml("".join(f"%TAG !h{n}! x\n" for n in range(200)).encode())


def test_json_is_read_as_yaml() -> None:
    value, _ = read_yaml(b'{"a": 1.0, "b": 1e3, "c": {"d": [2.0, 0.5]}}')
    assert json.dumps(value) == '{"a": 1, "b": 1000, "c": {"d": [2, 0.5]}}'
    assert read_yaml(b'{"a": 1,\n"a": 2}') == ({"a": 2}, ['line 2: key "a" already set in map'])


@pytest.mark.parametrize("text", ['{"a": "x",}', "{a: x}", '{"a": x}'])
def test_yaml_that_looks_like_json_is_read_as_yaml(text: str) -> None:
    assert read_yaml(text.encode()) == ({"a": "x"}, [])


WRITTEN: dict[str, str] = {
    "x": "x", "x y": "x y", "": '""', "y": '"y"', "12": '"12"', "1e3": '"1e3"', "1:30": '"1:30"',
    "2001-01-01": '"2001-01-01"', "~": '"~"', "null": '"null"', "0x1F": '"0x1F"', ".5": '".5"',
    "a: b": "'a: b'", "#c": "'#c'", "a#c": "a#c", "a #c": "'a #c'", "- a": "'- a'", "-a": "-a",
    "*a": "'*a'", "&a": "'&a'", "!a": "'!a'", "%a": "'%a'", "@a": "'@a'", "`a": "'`a'",
    "{a}": "'{a}'", "[a]": "'[a]'", "it's": "it's", "'q'": "'''q'''", '"q"': "'\"q\"'",
    "a,b": "a,b",
    " a": "' a'", "a ": "'a '", "a\tb": '"a\\tb"', "é": "é", "😀": '"\\U0001F600"',
    "a\nb": "|-\n  a\n  b", "a\nb\n": "|\n  a\n  b", "a\n\n": "|+\n  a\n", "\na": "|2-\n\n  a",
    "a \nb": '"a \\nb"', "---": "'---'", "...x": "'...x'", "a:": "'a:'", "a:b": "a:b", "?": "'?'",
    "? a": "'? a'", "=": "=", "<<": "<<", "1.2.3": "1.2.3", "1e400": "1e400", "\x85": '"\\N"',
    "10m": "10m",
}  # fmt: skip


@pytest.mark.parametrize("text", WRITTEN)
def test_quotes_are_go_s(text: str) -> None:
    assert write_yaml({"a": text}).decode() == f"a: {WRITTEN[text]}\n"


def test_keys_are_in_go_s_order_and_lists_are_not_indented() -> None:
    value = {"v10": 1, "v9": [{"b": 1, "a": []}], "v1-x": {}, "a.b": [[1, 2]], "a/b": None, "a": 1}
    assert write_yaml(value).decode() == (
        "a: 1\na.b:\n- - 1\n  - 2\na/b: null\nv1-x: {}\nv9:\n- a: []\n  b: 1\nv10: 1\n"
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.5, "1.5"), (1234567.5, "1.2345675e+06"), (1e21, "1e+21"), (1e-5, "1e-05"), (0.25, "0.25"),
     (123456.5, "123456.5"), (5e-324, "5e-324"), (-0.0001, "-0.0001")],
)  # fmt: skip
def test_floats_are_go_s(number: float, text: str) -> None:
    assert go_g(number) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=90),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=150), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
def test_what_is_written_is_read_again(value: Any) -> None:
    text = write_yaml(value)
    assert read_yaml(b"\n" + text)[0] == value
    assert not text.endswith(b"...\n") or "..." in json.dumps(value)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_input_is_read_or_refused(body: bytes) -> None:
    try:
        value, _ = read_yaml(body)
    except (YamlError, TooDeep):
        return
    json.dumps(value, allow_nan=False)


def test_libyaml_is_there() -> None:
    assert yaml.__with_libyaml__
