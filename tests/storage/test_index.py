"""The index by collection answers as one over whole keys would."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from instar.wire.storage.revision_index import RevisionIndex

KEYS = ("a", "a/b", "a/b/", "a/b/c", "a/b/cd", "a/b/d/e", "a/b!/x", "a.b/c/d", "a/bc/x", "b/c/d")
writes = st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=25)
places = st.sampled_from(("", "a", "a/", "a/b", "a/b/", "a/b/c", "a/b/d/", "a/b0", "b", "z", *KEYS))


def filled(changes: list[tuple[str, bool]]) -> tuple[RevisionIndex, list[tuple[int, str, int]]]:
    index, rows = RevisionIndex(), list[tuple[int, str, int]]()
    live = set[str]()
    for number, (key, delete) in enumerate(changes, 2):
        if delete and key not in live:
            continue
        (live.discard if delete else live.add)(key)
        rows.append((number, key, int(delete)))
        index.apply(key, number, delete)
    return index, rows


def state(rows: list[tuple[int, str, int]], revision: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, key, deleted in rows:
        if number <= revision:
            found.pop(key, None)
            if not deleted:
                found[key] = number
    return found


@settings(deadline=None, max_examples=300)
@given(writes, places, places, st.integers(0, 4), st.integers(0, 5))
def test_a_range_is_what_whole_keys_in_order_would_give(
    changes: list[tuple[str, bool]], prefix: str, start: str, limit: int, back: int
) -> None:
    index, rows = filled(changes)
    revision = max(1, index.revision - back)

    found, more = index.select(prefix, start, limit, revision)

    then = state(rows, revision)
    wanted = [(key, then[key]) for key in sorted(then) if key.startswith(prefix) and key >= start]
    assert found == wanted[: limit or None]
    assert more == (bool(limit) and len(wanted) > limit)


@settings(deadline=None, max_examples=200)
@given(writes, st.integers(0, 30))
def test_bulk_loading_equals_applying_each_row_and_compaction_keeps_current_rows(
    changes: list[tuple[str, bool]], compacted: int
) -> None:
    one, rows = filled(changes)
    many = RevisionIndex()
    many.load(rows)

    for index in (one, many):
        index.compacted = min(compacted, index.revision)
        while chunk := index.garbage(3):
            index.forget(len(chunk))

    now = one.revision
    assert many.revision == now
    assert many.counts() == one.counts()
    assert many.select("", "", 0, now) == one.select("", "", 0, now)
    assert dict(many.select("", "", 0, now)[0]) == state(rows, now)
    assert many.rows(now, many.counts()) == one.rows(now, one.counts())
