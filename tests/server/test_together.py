"""Which pieces of an answer go out in one write."""

from __future__ import annotations

import pytest

from instar.server.http.write_batching import join_pieces


def test_small_pieces_are_sent_with_large_ones() -> None:
    pieces = [b"[", b"x" * 100, b"y" * 100, b"z", b"]"]

    parts = [len(part) for part in join_pieces(b"head", pieces, 64)]

    assert parts == [105, 100, 2]


@pytest.mark.parametrize("enough", [1, 7, 64, 1000])
def test_nothing_is_lost_and_the_order_stays(enough: int) -> None:
    pieces = [b"%d," % number for number in range(100)]

    parts = list(join_pieces(b"head", pieces, enough))

    assert b"".join(parts) == b"head" + b"".join(pieces)
    assert all(len(part) >= enough for part in parts[:-1])


def test_an_answer_without_a_body_is_its_head() -> None:
    assert list(join_pieces(b"head", (), 64)) == [b"head"]
