"""Texts found by automata over patterns."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.schema.validation.pattern_automata import differing_texts, sample_texts
from instar.kube.schema.validation.patterns import compile_pattern

NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("^[a-z]+$", "^[a-y]+$"),
        ("^[a-z]{1,63}$", "^[a-z]{1,62}$"),
        (NAME, "^[a-z]([-a-z0-9]*[a-z0-9])?$"),
        ("a", "^a"),
        ("", "a$"),
        ("(?i)^abc$", "^abc$"),
        (r"^\d+(ms|s|m|h)$", r"^\d+(s|m|h)$"),
        ("^[[:alnum:]]+$", "^[[:alpha:]]+$"),
        (r"^\Qa.b\E.*$", r"^a\.b[^/]*$"),
        ("^(?P<x>a|b)*$", "^(a|b){0,4}$"),
        (r"^[^\x00-\x20]+$", "^[!-~]+$"),
        (r"^a.c$", r"^a[\w]c$"),
    ],
)
def test_a_narrowed_pattern_has_a_text_that_only_the_old_one_accepts(old: str, new: str) -> None:
    text = next(differing_texts([old], new))

    assert compile_pattern(old)(text)
    assert not compile_pattern(new)(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [("^[a-z]+$", "^[a-z]{1,}$"), ("^a", "a"), (r"^[0-9]+$", r"^\d*$"), ("^ab|^ac", "^a[bc]")],
)
def test_a_wider_pattern_has_none(old: str, new: str) -> None:
    assert list(differing_texts([old], new)) == []


def test_lengths_are_kept() -> None:
    found = list(islice(differing_texts(["^[a-z]+$"], "^[a-y]+$", least=5, most=6), 3))

    assert found
    assert all(5 <= len(text) <= 6 for text in found)


@pytest.mark.parametrize("pattern", [r"\bword\b", r"\pL+", "(?m)^a$", "(?U)a+", "a{1,1000}" * 9])
def test_a_pattern_without_an_automaton_gives_no_text(pattern: str) -> None:
    assert list(differing_texts([pattern], "^b$")) == []
    assert sample_texts(pattern) == ()


@pytest.mark.parametrize("pattern", [NAME, "^s3://[^/]+/.+$", "^(A|B)$", "x", r"^\d{3}-\d{4}$"])
def test_samples_fit_and_differ(pattern: str) -> None:
    samples = sample_texts(pattern)

    assert len(set(samples)) == len(samples) >= 2
    assert all(compile_pattern(pattern)(text) for text in samples)


_PIECES = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "(a|bc)", r"\d", "^", "$", "(?:ab)"])
_MARKS = st.sampled_from(["", "*", "+", "?", "{1,2}"])


@st.composite
def _patterns(draw: st.DrawFn) -> str:
    pieces = draw(st.lists(_PIECES, min_size=1, max_size=4))
    return "".join(each if each in "^$" else each + draw(_MARKS) for each in pieces)


@given(_patterns(), _patterns())
def test_no_text_means_that_random_texts_do_not_differ_either(old: str, new: str) -> None:
    found = next(differing_texts([old], new), None)
    texts = ["", "a", "b", "c", "1", "ab", "bc", "abc", "aab", "abcbc", "1a", "\n", "a\n", "bb1"]

    if found is None:
        accepted, refused = compile_pattern(old), compile_pattern(new)
        assert [text for text in texts if accepted(text) and not refused(text)] == []
