"""The bounded memory behind shared conversions."""

from __future__ import annotations

from instar.wire.conversion.lru_cache import ConversionCache


def test_the_memo_drops_the_least_recently_used_beyond_its_bytes() -> None:
    memo = ConversionCache(max_bytes=3 * 500)
    for key in "abc":
        memo.put("s", key, b"x" * 100)
    memo.get("s", "a")

    memo.put("s", "d", b"x" * 100)

    assert [key for key in "abcd" if memo.get("s", key)] == ["a", "c", "d"]
    assert memo.bytes <= 3 * 500


def test_the_cache_keeps_no_value_larger_than_its_limit() -> None:
    memo = ConversionCache(max_bytes=1000)
    memo.put("s", "small", b"x")

    memo.put("s", "huge", b"x" * 1001)

    assert memo.get("s", "huge") is None
    assert memo.get("s", "small") == b"x"


def test_the_memo_keeps_nothing_beyond_its_age() -> None:
    now = 0.0
    memo = ConversionCache(max_age=10, clock=lambda: now)
    memo.put("s", "a", b"x")

    now = 10.5

    assert memo.get("s", "a") is None
    assert memo.bytes == 0


def test_the_memo_replaces_an_entry_without_counting_it_twice() -> None:
    memo = ConversionCache()
    memo.put("s", "a", b"x" * 100)
    before = memo.bytes

    memo.put("s", "a", b"y" * 100)

    assert (memo.bytes, memo.get("s", "a")) == (before, b"y" * 100)


def test_dropping_a_scope_leaves_the_others() -> None:
    memo = ConversionCache()
    memo.put("s", "a", b"x")
    memo.put("t", "a", b"y")

    memo.drop("s")

    assert (memo.get("s", "a"), memo.get("t", "a")) == (None, b"y")


def test_prefetched_entries_are_evicted_first() -> None:
    memo = ConversionCache(max_bytes=3 * 500)
    memo.put("s", "asked", b"x" * 100)
    memo.put("s", "ahead", b"x" * 100, first_to_go=True)
    memo.put("s", "more", b"x" * 100)

    memo.put("s", "last", b"x" * 100)

    assert memo.get("s", "ahead") is None
    assert memo.get("s", "asked") is not None


def test_the_oldest_prefetched_entry_is_evicted_first() -> None:
    memo = ConversionCache(max_bytes=3 * 500)
    for key in "abcd":
        memo.put("s", key, b"x" * 100, first_to_go=True)

    assert [key for key in "abcd" if memo.holds("s", key)] == ["b", "c", "d"]


def test_a_prefetched_entry_that_was_requested_counts_like_a_requested_one() -> None:
    memo = ConversionCache(max_bytes=3 * 500)
    memo.put("s", "ahead", b"x" * 100, first_to_go=True)
    memo.put("s", "idle", b"x" * 100)
    memo.get("s", "ahead")

    memo.put("s", "more", b"x" * 100)
    memo.put("s", "last", b"x" * 100)

    assert [key for key in ("ahead", "idle") if memo.holds("s", key)] == ["ahead"]


def test_outdated_entries_are_evicted_first_and_stay_readable_until_then() -> None:
    memo = ConversionCache(max_bytes=3 * 500)
    memo.put("s", "old", b"o" * 100)
    memo.put("s", "ahead", b"x" * 100, first_to_go=True)
    memo.put("s", "new", b"x" * 100)
    memo.outdate("s", "old")
    memo.outdate("s", "unknown")

    assert memo.holds("s", "old")
    memo.put("s", "more", b"x" * 100)

    assert [key for key in ("old", "ahead", "new") if memo.holds("s", key)] == ["ahead", "new"]


def test_only_requested_entries_evict_prefetched_ones() -> None:
    """Or a server that writes a lot would be full of the past, and convert nothing ahead."""
    memo = ConversionCache(max_bytes=4 * 500)
    for key in "abcd":
        memo.put("s", key, b"x" * 100)
    assert memo.crowded

    for key in "abc":
        memo.outdate("s", key)

    assert not memo.crowded
    assert memo.bytes == 4 * 500


def test_the_weight_of_the_memo_is_that_of_its_entries() -> None:
    memo = ConversionCache(max_bytes=10 * 500)
    for key in "abcdef":
        memo.put("s", key, b"x" * 100, first_to_go=key in "abc")
    memo.get_many("s", "ae")
    memo.outdate("s", "f")
    memo.put("s", "b", b"x" * 200)
    assert memo.bytes == 6 * 500 + 100

    memo.drop("s")

    assert (memo.bytes, len(memo), memo.crowded) == (0, 0, False)
