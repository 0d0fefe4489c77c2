"""Label and field selectors: grammar, refusals, matching."""

from __future__ import annotations

import pytest

from instar.base.errors import BadRequest
from instar.kube.api.selectors import parse_field_selector, parse_label_selector

LABELS = {"app": "web", "tier": "front", "n": "7", "odd": "1_0"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("missing!=x", True),
        ("app in (web, db)", True),
        ("app notin (web)", False),
        ("missing notin (web)", True),
        ("app", True),
        ("!app", False),
        ("!missing", True),
        ("n>6", True),
        ("n<6", False),
        ("odd>6", False),
        ("app>1", False),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("empty=", False),
        ("app in (db,,web)", True),
        ("app in ()", False),
        ("app in (,)", False),
        ("in in (x)", False),
        ("!notin", True),
        ("app=web\0,app=db", True),
    ],
)
def test_label_selectors_match(text: str, matches: bool) -> None:
    selector = parse_label_selector(text)
    assert selector is not None
    assert selector.matches(LABELS) is matches


def test_no_selector_selects_everything() -> None:
    assert parse_label_selector("") is None
    assert parse_field_selector("") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("!=x", "found '!=', expected: !, identifier, or 'end of string'"),
        ("!,x", "unable to parse requirement: found ',', expected: identifier"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,=", "found '=', expected: identifier after ','"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
            "operators, the value must be an integer",
        ),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (
            "a>9223372036854775808",
            "unable to parse requirement: values[0]: Invalid value: "
            "\"9223372036854775808\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_bad_label_selectors_are_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        parse_label_selector(text)
    assert refusal.value.message == message


@pytest.mark.parametrize(
    ("text", "value", "matches"),
    [("f=x", "x", True), ("f==x", "y", False), ("f!=x", "y", True), (r"f=a\,b", "a,b", True)],
)
def test_field_selectors_match(text: str, value: str, matches: bool) -> None:
    selector = parse_field_selector(text)
    assert selector is not None
    assert selector.matches(lambda field: value) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bogus", "invalid selector: 'bogus'; can't understand 'bogus'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_bad_field_selectors_are_refused(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        parse_field_selector(text)
    assert refusal.value.message == message
