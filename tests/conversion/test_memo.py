"""The bounded memory behind shared conversions."""

from __future__ import annotations

from instar.conversion.memo import Memo


def test_the_memo_drops_the_least_recently_used_beyond_its_bytes() -> None:
    memo = Memo(max_bytes=3 * 500)
    for key in "abc":
        memo.put("s", key, b"x" * 100)
    memo.get("s", "a")

    memo.put("s", "d", b"x" * 100)

    assert [key for key in "abcd" if memo.get("s", key)] == ["a", "c", "d"]
    assert memo.bytes <= 3 * 500


def test_the_memo_does_not_keep_what_is_larger_than_itself() -> None:
    memo = Memo(max_bytes=1000)
    memo.put("s", "small", b"x")

    memo.put("s", "huge", b"x" * 1001)

    assert memo.get("s", "huge") is None
    assert memo.get("s", "small") == b"x"


def test_the_memo_keeps_nothing_beyond_its_age() -> None:
    now = 0.0
    memo = Memo(max_age=10, clock=lambda: now)
    memo.put("s", "a", b"x")

    now = 10.5

    assert memo.get("s", "a") is None
    assert memo.bytes == 0


def test_the_memo_replaces_an_entry_without_counting_it_twice() -> None:
    memo = Memo()
    memo.put("s", "a", b"x" * 100)
    before = memo.bytes

    memo.put("s", "a", b"y" * 100)

    assert (memo.bytes, memo.get("s", "a")) == (before, b"y" * 100)


def test_dropping_a_scope_leaves_the_others() -> None:
    memo = Memo()
    memo.put("s", "a", b"x")
    memo.put("t", "a", b"y")

    memo.drop("s")

    assert (memo.get("s", "a"), memo.get("t", "a")) == (None, b"y")


def test_what_nobody_asked_for_yet_is_the_first_to_go() -> None:
    memo = Memo(max_bytes=3 * 500)
    memo.put("s", "asked", b"x" * 100)
    memo.put("s", "ahead", b"x" * 100, first_to_go=True)
    memo.put("s", "more", b"x" * 100)

    memo.put("s", "last", b"x" * 100)

    assert memo.get("s", "ahead") is None
    assert memo.get("s", "asked") is not None
