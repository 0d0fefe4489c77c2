"""Fields counted over objects, and their way out of a CRD."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object
from instar.cli.main import main
from instar.kube.apply.field_usage import MOST_FIELDS, FieldTally
from instar.tools.migrator.versions.field_removal import (
    FieldHolders,
    NoSuchField,
    absent,
    blocks_removal,
    deprecate,
    deprecated,
    policy,
    remove,
    steps_of,
)
from tests.migrator.running import instar
from tests.migrator.support import crd, fill, name_of, objects_path
from tests.support.server import LiveServer

SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                "ports": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                },
            },
        }
    },
}

KEYED: Object = json.loads(json.dumps(SCHEMA))
KEYED["properties"]["spec"]["properties"]["ports"] |= {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
ATOMIC: Object = json.loads(json.dumps(SCHEMA))
ATOMIC["properties"]["spec"]["properties"]["tags"]["x-kubernetes-map-type"] = "atomic"


def owned(manager: str, fields: Object, time: str = "2026-01-02T00:00:00Z") -> Object:
    return {"manager": manager, "operation": "Apply", "time": time, "fieldsV1": fields}


def obj(spec: Object, *entries: Object) -> Object:
    return {"metadata": {"name": "a", "managedFields": list(entries)}, "spec": spec}


def test_a_field_is_counted_once_per_object_with_values_owner_and_time() -> None:
    tally = FieldTally(SCHEMA)
    size: Object = {"f:spec": {"f:size": {}}}
    tally.add(obj({"size": 1}, owned("helm", size)))
    tally.add(obj({"size": 1}, owned("helm", size, "2025-01-01T00:00:00Z")))
    tally.add(obj({}))

    use = tally.of("spec.size")

    assert (use.objects, dict(use.values), use.since) == (2, {"1": 2}, "2025-01-01T00:00:00Z")
    assert use.says(tally.total) == "2 of 3 objects set spec.size, all by helm"


def test_the_owner_of_a_container_does_not_own_what_lies_in_it() -> None:
    tally = FieldTally(KEYED)
    creator: Object = {"f:spec": {".": {}, "f:size": {}, "f:tags": {".": {}}, "f:ports": {".": {}}}}
    port: Object = {'k:{"name":"a"}': {".": {}, "f:name": {}}}
    applier: Object = {"f:spec": {"f:tags": {"f:x": {}}, "f:ports": port}}
    spec = {"size": 1, "tags": {"x": "1"}, "ports": [{"name": "a"}]}
    tally.add(obj(spec, owned("creator", creator), owned("applier", applier)))

    owners = {path: set(use.managers) for path, use in tally.fields.items()}

    assert owners == {
        "spec": {"creator"},
        "spec.size": {"creator"},
        "spec.tags": {"creator"},
        "spec.tags.*": {"applier"},
        "spec.ports": {"creator"},
        "spec.ports[*]": {"applier"},
        "spec.ports[*].name": {"applier"},
    }


def test_the_owner_of_an_atomic_list_or_map_owns_what_lies_in_it() -> None:
    tally = FieldTally(ATOMIC)
    fields: Object = {"f:spec": {".": {}, "f:tags": {}, "f:ports": {}}}
    spec = {"size": 1, "tags": {"x": "1"}, "ports": [{"name": "a"}]}
    tally.add(obj(spec, owned("helm", fields)))

    assert dict(tally.of("spec.tags.*").managers) == {"helm": 1}
    assert dict(tally.of("spec.ports[*].name").managers) == {"helm": 1}
    assert not tally.of("spec.size").managers


def test_a_container_without_an_owner_counts_for_the_owners_of_its_fields() -> None:
    tally = FieldTally(SCHEMA)
    tally.add(obj({"tags": {"x": "1"}}, owned("argo", {"f:spec": {"f:tags": {"f:x": {}}}})))

    assert tally.of("spec.tags").says(1) == "1 of 1 object sets spec.tags, all by argo"


def test_items_and_keys_of_free_maps_count_as_one_field() -> None:
    tally = FieldTally(SCHEMA)
    ports: Object = {"f:spec": {"f:ports": {'k:{"name":"a"}': {"f:name": {}}}}}
    spec = {"ports": [{"name": "a"}, {"name": "b"}], "tags": {"x": "1", "y": "2"}}
    tally.add(obj(spec, owned("flux", ports), owned("helm", {"f:spec": {"f:tags": {"f:x": {}}}})))

    assert tally.of("spec.ports[*].name").objects == 1
    assert tally.of("spec.ports[*].name").managers == {"flux": 1}
    assert tally.of("spec.tags.*").objects == 1
    assert tally.of("spec.tags.*").managers == {"helm": 1}


def test_the_owner_of_an_atomic_part_owns_its_fields() -> None:
    tally = FieldTally(SCHEMA)
    tally.add(obj({"ports": [{"name": "a"}]}, owned("helm", {"f:spec": {"f:ports": {}}})))

    assert tally.of("spec.ports[*].name").managers == {"helm": 1}


def test_many_values_are_not_kept() -> None:
    tally = FieldTally(SCHEMA)
    for number in range(50):
        tally.add(obj({"size": number}))

    assert tally.of("spec.size").many
    assert not tally.of("spec.size").values


def test_an_unset_field_is_reported_as_unset() -> None:
    tally = FieldTally(SCHEMA)
    tally.add(obj({}))

    assert tally.of("spec.size").says(1) == "none of 1 object sets spec.size"


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)), max_size=12))
def test_counts_are_the_number_of_objects_that_have_the_field(specs: list[Object]) -> None:
    tally = FieldTally({})
    for spec in specs:
        tally.add(obj(spec))

    for name in "abc":
        assert tally.of(f"spec.{name}").objects == sum(name in spec for spec in specs)


def test_a_deprecation_is_a_description_and_can_be_read_back() -> None:
    definition = crd()

    changed = deprecate(definition, "spec.host", "use port")
    again = deprecate(definition, "spec.host", "use port")

    assert changed == ["v1beta1"] or changed == ["v1beta1", "v1"]
    assert again == []
    assert {item.path for item in deprecated(definition)} == {"spec.host"}
    assert deprecated(definition)[0].text == "use port"


def test_the_previous_description_is_kept_below() -> None:
    definition = crd(schema=json.loads(json.dumps(SCHEMA)))
    node = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    node["properties"]["size"]["description"] = "How big."

    deprecate(definition, "spec.size", "first")
    deprecate(definition, "spec.size", "second")

    assert node["properties"]["size"]["description"] == "Deprecated: second\n\nHow big."


def test_a_removed_field_is_required_no_more() -> None:
    schema = json.loads(json.dumps(SCHEMA))
    schema["properties"]["spec"]["required"] = ["size"]
    definition = crd(schema=schema)

    remove(definition, "spec.size")

    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert "size" not in spec["properties"]
    assert "required" not in spec


@pytest.mark.parametrize("path", ["", ".spec", "spec.", "spec[0]", "spec..a"])
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is no field"):
        steps_of(path)


def test_a_field_no_version_has_is_named() -> None:
    with pytest.raises(NoSuchField, match=r"has a field spec\.nothing"):
        deprecate(crd(), "spec.nothing", "")


@pytest.mark.parametrize(
    ("path", "expression"),
    [
        ("spec.old", "(!has(object.spec) || !has(object.spec.old))"),
        ("spec.my-old", "(!has(object.spec) || !has(object.spec.my__dash__old))"),
        (
            "spec.ports[*].name",
            "(!has(object.spec) || (!has(object.spec.ports) || "
            "object.spec.ports.all(x0, !has(x0.name))))",
        ),
    ],
)
def test_the_policy_asks_for_the_fields_absence(path: str, expression: str) -> None:
    assert absent(path) == expression


def test_a_policy_warns_unless_deny_is_set() -> None:
    definition = crd()

    warning, denying = (
        policy(definition, "spec.host", "no", deny=deny)[1] for deny in (False, True)
    )

    assert warning["spec"]["validationActions"] == ["Warn", "Audit"]
    assert denying["spec"]["validationActions"] == ["Deny", "Audit"]


def holders(tally: FieldTally, path: str, *unread: str) -> FieldHolders:
    return FieldHolders(tally.of(path), tally.total, "v1", unread, is_elsewhere=False)


def test_a_field_may_be_removed_when_it_is_deprecated_and_unset() -> None:
    tally = FieldTally(SCHEMA)
    tally.add(obj({"size": 1}))
    unset, used = holders(tally, "spec.ports"), holders(tally, "spec.size")

    assert blocks_removal(unset, marked=True) == []
    assert blocks_removal(used, marked=True) == ["1 of 1 object sets spec.size"]
    assert "announced" in blocks_removal(unset, marked=False)[0]
    assert "not served" in blocks_removal(holders(tally, "spec.ports", "v1a"), marked=True)[0]


def test_fields_of_the_schema_are_counted_beside_any_number_of_others() -> None:
    tally = FieldTally(SCHEMA)
    tally.add(obj({f"free{number}": 1 for number in range(MOST_FIELDS + 10)}))
    tally.add(obj({"size": 1, "ports": [{"name": "http"}], "tags": {"a": "b"}}))

    assert tally.of("spec.size").objects == 1
    assert tally.of("spec.ports[*].name").objects == 1
    assert tally.of("spec.tags.*").objects == 1
    assert len(tally.fields) < MOST_FIELDS + 10


def test_the_whole_way_out_as_a_user_walks_it(server: LiveServer, tmp_path: Path) -> None:
    definition = crd()
    server.create_crd(definition)
    fill(server, definition, 3)
    name = name_of(definition)

    counted = instar(server, "census", name, "--fields")
    early = instar(server, "fields", name, "remove", "spec.host")
    words = ("deprecate", "spec.host", "--message", "use port")
    told = instar(server, "fields", name, *words, "--policy", str(tmp_path / "policy.yaml"))
    shown = instar(server, "fields", name)
    for number in range(3):
        path = objects_path(definition, "v1", f"w{number:05d}")
        patch = {"spec": {"host": None}}
        kind = "application/merge-patch+json"
        assert server.request("PATCH", path, patch, content_type=kind).status == 200
    ready = instar(server, "fields", name)
    removed = instar(server, "fields", name, "remove", "spec.host")

    assert counted.returncode == 0, counted.stderr
    assert "spec.host  3" in counted.stdout
    assert early.returncode == 1
    assert "3 of 3 objects set spec.host" in early.stderr
    assert told.returncode == 0, told.stderr
    assert "3 of 3 objects set spec.host" in told.stdout
    assert [m["kind"] for m in yaml.safe_load_all((tmp_path / "policy.yaml").read_text())] == [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]
    assert "spec.host: 3 of 3 objects set spec.host" in shown.stdout
    assert f"it can be removed: instar fields {name} remove spec.host" in ready.stdout
    assert removed.returncode == 0, removed.stderr
    assert removed.stdout.startswith(f"{name}: spec.host is removed at ")


def test_a_review_names_the_managers_of_a_removed_field(
    server: LiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definition = crd()
    server.create_crd(definition)
    fill(server, definition, 3)
    release = json.loads(json.dumps(definition))
    remove(release, "spec.host")
    (tmp_path / "new.yaml").write_text(yaml.safe_dump(release))
    words = ["review", f"kube:{name_of(definition)}", str(tmp_path / "new.yaml")]

    main([*words, "--objects", "kube:", "--kubeconfig", str(server.kubeconfig)])

    assert "3 of 3 objects set spec.host, all by instar" in capsys.readouterr().out
