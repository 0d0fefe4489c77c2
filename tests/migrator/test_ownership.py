"""Who owns which field, carried over to another version: the rules, without a server."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object
from instar.kube.apply.field_set import FieldSet, contains, members
from instar.tools.migrator.field_mapping import carried
from instar.tools.migrator.ownership import lost, relabelled


def entry(
    version: str, fields: FieldSet, manager: str = "argocd", operation: str = "Apply"
) -> Object:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": f"g/{version}",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def owned(*entries: Object, **spec: object) -> Object:
    return {"apiVersion": "g/v1", "metadata": {"managedFields": list(entries)}, "spec": spec}


def spec_fields(*names: str) -> FieldSet:
    return {"f:spec": {f"f:{name}": {} for name in names}}


def test_entries_of_gone_versions_get_the_new_label_and_keep_their_fields() -> None:
    obj = owned(entry("v1alpha1", spec_fields("size")), size=1)

    new = relabelled(obj, "g", ["v1alpha1"], {"v1": obj})

    assert new is not None
    assert [item["apiVersion"] for item in new.entries] == ["g/v1"]
    assert new.entries[0]["fieldsV1"] == spec_fields("size")
    assert (new.labelled, new.dropped) == (1, 0)


def test_other_groups_and_other_versions_are_left_alone() -> None:
    obj = owned(entry("v1", spec_fields("size")), {**entry("x", {}), "apiVersion": "other/v9"})

    assert relabelled(obj, "g", ["v9"], {}) is None


def test_two_entries_that_become_one_are_put_together() -> None:
    old = entry("v1beta1", spec_fields("size"), "kubectl", "Update")
    now = entry("v1", spec_fields("host"), "kubectl", "Update")
    obj = owned(old, now, size=1, host="a")

    new = relabelled(obj, "g", ["v1beta1"], {})

    assert new is not None
    assert [item["fieldsV1"] for item in new.entries] == [spec_fields("host", "size")]


def test_a_renamed_field_is_followed_where_the_old_version_can_still_be_read() -> None:
    obj = owned(entry("v1beta1", spec_fields("hostName")), host="a", size=1)
    before = {"apiVersion": "g/v1beta1", "metadata": {}, "spec": {"hostName": "a", "size": 1}}

    new = relabelled(obj, "g", ["v1beta1"], {"v1beta1": before, "v1": obj})

    assert new is not None
    assert new.entries[0]["fieldsV1"] == spec_fields("host")


def test_a_renamed_parent_takes_its_children_along() -> None:
    old: Object = {"metadata": {}, "spec": {"where": {"host": "a", "port": 1}}}
    new: Object = {"metadata": {}, "spec": {"endpoint": {"host": "a", "port": 1}}}

    kept, missing = carried({"f:spec": {"f:where": {"f:port": {}}}}, old, new)

    assert kept == {"f:spec": {"f:endpoint": {"f:port": {}}}}
    assert missing == 0


def test_a_split_field_becomes_all_its_parts() -> None:
    old: Object = {"metadata": {}, "spec": {"cron": "1 2", "size": 3}}
    new: Object = {"metadata": {}, "spec": {"min": "1", "hour": "2", "size": 3}}

    kept, missing = carried(spec_fields("cron"), old, new)

    assert kept == spec_fields("min", "hour")
    assert missing == 0


def test_without_the_old_reading_a_field_with_no_place_is_counted() -> None:
    kept, missing = carried(
        spec_fields("cron", "size"), None, {"metadata": {}, "spec": {"size": 1}}
    )

    assert (kept, missing) == (spec_fields("size"), 1)


def test_items_of_lists_are_found_by_their_keys() -> None:
    fields: FieldSet = {"f:spec": {"f:ports": {'k:{"port":80}': {".": {}, "f:name": {}}}}}
    obj: Object = {"metadata": {}, "spec": {"ports": [{"port": 80, "name": "http"}]}}

    assert carried(fields, None, obj) == (fields, 0)
    assert carried(fields, None, {"metadata": {}, "spec": {"ports": []}}) == ({}, 2)


def test_if_nothing_would_be_left_a_minimal_entry_stays() -> None:
    new = relabelled(owned(entry("v1alpha1", spec_fields("gone"))), "g", ["v1alpha1"], {})

    assert new is not None
    (seed,) = new.entries
    assert (seed["apiVersion"], seed["manager"]) == ("g/v1", "argocd")
    assert seed["fieldsV1"]


def test_a_wiped_list_is_every_owners_loss() -> None:
    before = [entry("v1", spec_fields("size")), entry("v1", spec_fields("host"), "kubectl")]

    assert lost(before, []) == ["argocd (Apply): .spec.size", "kubectl (Apply): .spec.host"]
    assert lost(before, before) == []


def test_a_field_that_became_part_of_an_atomic_one_is_not_lost() -> None:
    before = [entry("v1", {"f:spec": {"f:where": {"f:host": {}}}})]
    after = [entry("v1", {"f:spec": {"f:where": {}}})]

    assert lost(before, after) == []


names = st.text("abcd", min_size=1, max_size=2)
values = st.integers(0, 3) | st.text("xy", max_size=2)


@given(st.dictionaries(names, values, max_size=6), st.data())
def test_without_a_conversion_every_owned_field_that_is_there_stays_owned(
    spec: dict[str, object], data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(sorted(spec)))) if spec else set()
    obj = owned(entry("v1beta1", spec_fields(*sorted(chosen))), **spec)

    new = relabelled(obj, "g", ["v1beta1"], {})

    assert new is not None
    if chosen:
        assert lost(obj["metadata"]["managedFields"], new.entries) == []


@given(st.dictionaries(names, values, min_size=1, max_size=6), st.dictionaries(names, values))
def test_mapped_fields_exist_at_the_new_version(
    old: dict[str, object], new: dict[str, object]
) -> None:
    obj: Object = {"metadata": {}, "spec": new}

    kept, _ = carried(spec_fields(*sorted(old)), {"metadata": {}, "spec": old}, obj)

    for path in members(kept):
        assert contains(kept, path)
        assert path[1].removeprefix("f:") in new
