"""Readers of clients' bytes refuse in words of the error tree, in bounded time, whatever comes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import mutation
from tests.fuzz.mutation import TOKENS
from tests.fuzz.parsers import PARSERS, attempt

PATIENCE = 1.0
"""Seconds of processor time that one small text may take."""


def texts(name: str) -> st.SearchStrategy[bytes]:
    """Words of the language in any order, changed good ones, and any bytes."""
    parser = PARSERS[name]
    words = st.lists(st.sampled_from(TOKENS[parser.tokens]), max_size=30).map("".join)
    changed = st.builds(
        lambda seed, good: _changed(Random(seed), good, TOKENS[parser.tokens]),
        st.integers(0, 2**32),
        st.sampled_from(parser.seeds),
    )
    free = words.map(lambda text: text.encode("utf-8", "surrogatepass"))
    return changed | free | st.binary(max_size=300)


def _changed(chance: Random, good: bytes, tokens: Sequence[str]) -> bytes:
    if chance.random() < 0.3:
        return mutation.binary(chance, good)
    text = mutation.text(chance, good.decode("latin-1"), tokens)
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", PARSERS)
def test_nothing_but_refusals_comes_out_of(name: str) -> None:
    parser = PARSERS[name]

    @settings(max_examples=300, deadline=None, database=None)
    @given(texts(name))
    def read(data: bytes) -> None:
        began = time.thread_time()
        attempt(parser, data)
        assert time.thread_time() - began < PATIENCE

    read()


@pytest.mark.parametrize("name", PARSERS)
def test_a_good_text_is_read_by(name: str) -> None:
    PARSERS[name].read(PARSERS[name].seeds[0])
