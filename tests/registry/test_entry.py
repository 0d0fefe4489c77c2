"""What the cache holds of an object: its bytes with the revision in the right place."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.base.json_values import Object
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.stored.entry import (
    CacheEntry,
    InMemoryEntry,
    UnreadableEntry,
    ingest,
)
from instar.server.registry.stored.object_bytes import labels_of, labels_text, offset_by_uid
from instar.wire.storage.store import Record

TEXT = st.sampled_from(["", "a", '"uid":"', "metadata", "uid", "u-1", "}", "\\"])
VALUES = st.recursive(
    TEXT | st.integers(0, 9),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=6,
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("x"), "uid": st.sampled_from(["u-1", "u-2"])},
    optional={
        "annotations": st.dictionaries(TEXT, TEXT, max_size=2),
        "ownerReferences": st.lists(
            st.fixed_dictionaries({"kind": st.just("K"), "uid": st.sampled_from(["u-1", "u-3"])}),
            max_size=2,
        ),
    },
)
OBJECTS = st.fixed_dictionaries(
    {"apiVersion": st.just("g/v1"), "kind": st.just("K"), "metadata": METADATA},
    optional={"spec": VALUES, "status": VALUES},
)


def read(value: bytes) -> CacheEntry:
    return ingest(Record("g/ks/x", value, 7), "x")


def with_revision(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": "7"}}


@given(OBJECTS)
def test_a_view_is_the_stored_object_with_its_revision(obj: dict[str, Any]) -> None:
    entry = read(encode_sorted(obj) + b"\n")

    assert orjson.loads(entry.view) == with_revision(obj)
    assert entry.view == encode_sorted(with_revision(obj))
    assert entry.stored() == encode_sorted(obj)
    assert entry.content() == obj
    assert entry.api_version == "g/v1"


@given(OBJECTS)
def test_a_writer_s_draft_shows_the_same(obj: dict[str, Any]) -> None:
    raw = encode_sorted(obj)
    draft = InMemoryEntry(raw, 7, "x", offset_by_uid(raw, obj))

    assert draft.view == read(raw).view


@pytest.mark.parametrize(
    "foreign",
    [
        {"kind": "K", "metadata": {"uid": "u", "name": "x", "resourceVersion": "3"}},
        {"metadata": {"uid": "u", "zz": {"uid": "u"}, "name": "x"}, "apiVersion": "g/v1"},
    ],
)
def test_bytes_written_by_other_processes_get_the_right_revision(foreign: dict[str, Any]) -> None:
    entry = read(orjson.dumps(foreign))

    assert entry.decode()["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"metadata":{"uid":"u"}', b'"uid":"u"}', b"7"])
def test_bytes_that_are_not_an_object_are_reported_when_read(damaged: bytes) -> None:
    entry = read(damaged)

    with pytest.raises(UnreadableEntry):
        entry.content()
    assert entry.labels == {}


def test_objects_with_equal_labels_share_one_dict() -> None:
    labels = {"app": "a", "tier": "b"}
    obj = {"apiVersion": "g/v1", "kind": "K", "metadata": {"labels": labels, "uid": "u"}}

    first, second = read(encode_sorted(obj)), read(encode_sorted(obj))

    assert first.labels == labels
    assert first.labels is second.labels


names = st.sampled_from(["labels", "metadata", "a}b", 'q"q', "uid", "kind", "n", '"labels":{'])
trees = st.recursive(
    names | st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=400)
@given(
    st.dictionaries(names, names, max_size=3) | st.none(),
    st.dictionaries(names, names, max_size=2),
    st.dictionaries(st.sampled_from(["data", "spec", "zeta"]), trees, max_size=3),
    st.sampled_from([orjson.OPT_SORT_KEYS, None]),
)
def test_labels_found_in_the_text_are_those_of_the_object(
    labels: dict[str, str] | None,
    annotations: dict[str, str],
    more: dict[str, object],
    order: int | None,
) -> None:
    metadata: dict[str, object] = {"annotations": annotations, "name": "x", "uid": "u"}
    metadata |= {} if labels is None else {"labels": labels}
    obj = {"apiVersion": "g/v1", "kind": "K", **more, "metadata": metadata}
    value = orjson.dumps(obj, option=order)

    found = labels_text(value)

    assert found is None or (labels_of(found) if found else {}) == (labels or {})
    assert read(value).labels == (labels or {})


@pytest.mark.parametrize("suffix", ["x", "ns/x"])
@pytest.mark.parametrize("uid", [{}, {"uid": "u-1"}])
def test_a_label_called_uid_is_not_taken_for_the_objects(uid: Object, suffix: str) -> None:
    """By another's hand an object may come without one."""
    namespace, _, name = suffix.rpartition("/")
    metadata: Object = {"labels": {"name": "y", "uid": "z"}, "name": name, **uid}
    if namespace:
        metadata["namespace"] = namespace
    value = encode_sorted({"apiVersion": "g/v1", "kind": "K", "metadata": metadata, "spec": {}})

    shown = orjson.loads(ingest(Record(f"g/ks/{suffix}", value, 7), suffix).view)

    assert shown["metadata"]["labels"] == {"name": "y", "uid": "z"}
    assert shown["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize("suffix", ["x", "ns/x"])
def test_nor_is_that_of_an_owner_or_of_something_within(suffix: str) -> None:
    namespace, _, name = suffix.rpartition("/")
    other = {"name": "y", "uid": "z", **({"namespace": namespace} if namespace else {})}
    place: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
    owned = {"apiVersion": "g/v1", "kind": "K", "metadata": {**place, "ownerReferences": [other]}}
    around = {"apiVersion": "g/v1", "kind": "K", "metadata": place, "spec": other}
    for written in (owned, around, {**around, "data": other}):
        record = Record(f"g/ks/{suffix}", encode_sorted(written), 7)
        shown = orjson.loads(ingest(record, suffix).view)

        assert shown["metadata"].pop("resourceVersion") == "7"
        assert shown["metadata"].pop("uid") == ""
        assert shown == written


@pytest.mark.parametrize("suffix", ["x", "ns/x"])
def test_entries_that_this_server_wrote_need_no_normalising(suffix: str) -> None:
    namespace, _, name = suffix.rpartition("/")
    metadata: Object = {"name": name, "uid": "u-1"}
    if namespace:
        metadata["namespace"] = namespace
    value = encode_sorted({"apiVersion": "g/v1", "kind": "K", "metadata": metadata}) + b"\n"

    assert ingest(Record(f"g/ks/{suffix}", value, 7), suffix).raw is None
