"""A CRD written again with the same spec is told by its bytes; whatever is odd is not known."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from instar.server.registry.resources.crd_text import around_equal_spec, without_spec
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry

_SPEC: dict[str, Any] = {
    "group": "g",
    "x": {"a": 1, "properties": {"a": 1, "spec": {"b": 1, "status": {"c": 2}}}},
}


def _entry(spec: Any = _SPEC, sort: bool = True, revision: int = 1, **members: Any) -> CacheEntry:
    metadata = {"annotations": {"n": ',"spec":{"status":{'}, "name": "x", "uid": "u"}
    crd = {"apiVersion": "v1", "metadata": metadata, "spec": spec, **members}
    raw = orjson.dumps(crd, option=orjson.OPT_SORT_KEYS if sort else 0)
    return InMemoryEntry(raw, revision, "x")


def test_fields_around_an_unchanged_spec_are_read_without_decoding_it() -> None:
    old, new = _entry(status={"a": 1}), _entry(status={"b": [{"status": "True"}]}, revision=12345)

    found = around_equal_spec(old, new)

    assert found is not None
    assert found["status"] == {"b": [{"status": "True"}]}
    assert found["metadata"]["resourceVersion"] == "12345"
    assert "spec" not in found
    assert found == without_spec(new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_entry(status={}), _entry({"group": "g", "x": {"a": 2}}, status={})),
        (_entry(status={}), _entry({**_SPEC, "y": 1}, status={})),
        (_entry({**_SPEC, "y": 1}, status={}), _entry(status={})),
        (_entry(), _entry()),
        (_entry(status={}), _entry()),
        (_entry(), _entry(status={})),
        (_entry([], status={}), _entry([], status={})),
    ],
    ids=["changed", "longer", "shorter", "no status", "lost status", "won status", "no object"],
)
def test_another_spec_or_an_odd_text_is_not_known(old: CacheEntry, new: CacheEntry) -> None:
    assert around_equal_spec(old, new) is None


def test_a_status_before_the_spec_is_not_known() -> None:
    status, crd = {"a": 1}, {"apiVersion": "v1", "metadata": {"name": "x", "uid": "u"}}
    raw = orjson.dumps({**crd, "status": status, "spec": _SPEC})

    assert without_spec(InMemoryEntry(raw, 1, "x")) is None
