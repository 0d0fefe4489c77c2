"""What holds for every schema and every object, not only for the scenarios we thought of."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from instar.base.json_values import same_json_numbers
from instar.kube.apply import managers
from instar.kube.apply.applying import Application, apply_patch
from instar.kube.apply.compare import compare
from instar.kube.apply.conflicts import ApplyConflict
from instar.kube.apply.conversion_requests import drive
from instar.kube.apply.field_set import (
    FieldSet,
    difference,
    intersection,
    leaves,
    parse,
    text,
    union,
)
from instar.kube.apply.managed_fields import decode
from instar.kube.apply.managers import Writer, ownership_before, track_update
from instar.kube.apply.merge import merge
from instar.kube.apply.owned_paths import (
    NEVER_OWNED,
    index_by_element,
    owned_in_object,
    present_in_object,
)
from instar.kube.apply.ownership_schema import DEDUCED, Atom, TypedSchema, compile_schema
from instar.kube.schema.structure.structural import Structural
from tests.apply.support import same_object

V1 = "g.io/v1"
Obj = dict[str, Any]
LAWS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

NAMES = {"left": ("a", "b"), "right": ("c", "d"), "whole": ("a", "b", "c", "d")}
"""Two sides of an object share no one-value field, no map key and no item."""
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "x", "y<", "é"]),
    "integer": st.integers(-2, 2),
    "boolean": st.booleans(),
}


def scalar_nodes() -> st.SearchStrategy[Structural]:
    plain = st.sampled_from(sorted(SCALARS)).map(lambda kind: Structural(type=kind))
    return st.one_of(plain, st.just(Structural(int_or_string=True)))


@st.composite
def list_nodes(draw: st.DrawFn, items: st.SearchStrategy[Structural]) -> Structural:
    match draw(st.sampled_from(["atomic", "set", "map"])):
        case "set":
            return Structural(type="array", list_type="set", items=Structural(type="string"))
        case "map":
            properties = {"k": Structural(type="string"), "v": draw(items)}
            item = Structural(type="object", properties=properties)
            return Structural(type="array", list_type="map", list_map_keys=("k",), items=item)
        case _:
            return Structural(type="array", items=draw(items))


@st.composite
def object_nodes(draw: st.DrawFn, inner: st.SearchStrategy[Structural]) -> Structural:
    map_type = draw(st.sampled_from([None, "granular", "atomic"]))
    if draw(st.booleans()):
        return Structural(type="object", additional=draw(inner), map_type=map_type)
    properties = draw(st.dictionaries(st.sampled_from("abcd"), inner, min_size=1))
    preserve = draw(st.booleans())
    return Structural(
        type="object", properties=properties, preserve_unknown=preserve, map_type=map_type
    )


NODES = st.recursive(
    scalar_nodes(), lambda inner: st.one_of(object_nodes(inner), list_nodes(inner)), max_leaves=8
)
SPECS = st.dictionaries(st.sampled_from("abcd"), NODES, min_size=1).map(
    lambda properties: Structural(
        type="object",
        properties={"spec": Structural(type="object", properties=properties)},
    )
)


def is_one_value(node: Structural) -> bool:
    if node.type == "object":
        return node.map_type == "atomic"
    return node.type != "array" or node.list_type not in ("set", "map")


@st.composite
def values(draw: st.DrawFn, node: Structural, side: str) -> Any:
    if node.int_or_string:
        return draw(st.one_of(st.integers(0, 3), st.sampled_from(["10%", ""])))
    if node.type == "object":
        return draw(maps(node, side))
    if node.type == "array":
        return draw(lists(node, side))
    return draw(SCALARS[node.type])


@st.composite
def maps(draw: st.DrawFn, node: Structural, side: str) -> Obj:
    inside = "whole" if node.map_type == "atomic" else side
    if isinstance(node.additional, Structural):
        keys = draw(st.sets(st.sampled_from(NAMES[inside])))
        return {key: draw(values(node.additional, "whole")) for key in sorted(keys)}
    out = {}
    for name, child in node.properties.items():
        if is_one_value(child) and name not in NAMES[inside]:
            continue
        if draw(st.booleans()):
            out[name] = draw(values(child, inside))
    if node.preserve_unknown and draw(st.booleans()):
        out[f"x-{inside}"] = draw(st.sampled_from([1, "s", True, [1], {"y": {"z": 1}}]))
    return out


@st.composite
def lists(draw: st.DrawFn, node: Structural, side: str) -> list[Any]:
    assert node.items is not None
    if node.list_type == "set":
        return draw(st.lists(st.sampled_from(NAMES[side]), unique=True))
    if node.list_type == "map":
        keys = draw(st.lists(st.sampled_from(NAMES[side]), unique=True))
        return [{**draw(values(node.items, "whole")), "k": key} for key in keys]
    return draw(st.lists(values(node.items, "whole"), max_size=2))


@st.composite
def objects(draw: st.DrawFn, schema: Structural, side: str = "whole") -> Obj:
    metadata: Obj = {"name": "o"}
    labels = draw(st.sets(st.sampled_from(NAMES[side])))
    if labels:
        metadata["labels"] = dict.fromkeys(sorted(labels), "v")
    spec = draw(values(schema.properties["spec"], side))
    return {"apiVersion": V1, "kind": "T", "metadata": metadata, "spec": spec}


class World:
    """One object under one schema, written by many; time is a counter."""

    def __init__(self, structural: Structural) -> None:
        self.schema = compile_schema(structural)
        self.schemas = {V1: self.schema}
        self.live: Obj | None = None
        self.clock = 0

    def _writer(self, manager: str) -> Writer:
        self.clock += 1
        return Writer(manager, V1, f"2026-01-01T00:00:{self.clock:02d}Z")

    def apply(self, manager: str, config: Obj, *, force: bool = False) -> bool:
        request = Application(self._writer(manager), config, self.live, self.schemas, force)
        applied = drive(apply_patch(request), same_object)
        self._keep(applied.obj, applied.managed_fields)
        return applied.changed

    def write(self, manager: str, new: Obj) -> None:
        before = ownership_before(self.live, new)
        live = None if self.live is None else {V1: self.live}
        found = track_update(before, self._writer(manager), live, {V1: new}, self.schemas)
        self._keep(copy.deepcopy(new), found)

    def _keep(self, obj: Obj, managed_fields: list[Obj] | None) -> None:
        """Stored as JSON, as the registry would."""
        obj["metadata"].pop("managedFields", None)
        if managed_fields is not None:
            obj["metadata"]["managedFields"] = managed_fields
        self.live = orjson.loads(orjson.dumps(obj))

    @property
    def content(self) -> Obj:
        assert self.live is not None
        bare = copy.deepcopy(self.live)
        bare["metadata"].pop("managedFields", None)
        out: Obj = ordered(self.schema.root, bare)
        return out

    @property
    def owners(self) -> dict[str, FieldSet]:
        assert self.live is not None
        table = decode(self.live["metadata"].get("managedFields"))
        return {who.manager: entry.fields for who, entry in table.items()}


def ordered(atom: Atom, value: Any) -> Any:
    """The value with items of sets and keyed lists in one order; one value keeps its own."""
    if isinstance(value, dict) and atom.map is not None and not atom.map.atomic:
        fields, other = atom.map.fields, atom.map.element or DEDUCED
        return {
            name: ordered(fields[name][1] if name in fields else other, item)
            for name, item in value.items()
        }
    if isinstance(value, list) and atom.list is not None and atom.list.relation != "atomic":
        found = index_by_element(atom.list, value)
        element = atom.list.element
        return [ordered(element, copy_) for key in sorted(found) for copy_ in found[key]]
    return value


def empty_config() -> Obj:
    return {"apiVersion": V1, "kind": "T", "metadata": {"name": "o"}}


def claims_all(value: Any) -> bool:
    """False when it has an empty list: applying one claims nothing, so it goes with its parent."""
    if isinstance(value, dict):
        return all(map(claims_all, value.values()))
    return value != [] and (not isinstance(value, list) or all(map(claims_all, value)))


def with_nulls(value: Any) -> Any:
    """Empty maps and lists as null: that is what becomes of one that loses its last item."""
    if isinstance(value, dict):
        return {name: with_nulls(item) for name, item in value.items()} or None
    return (list(map(with_nulls, value)) or None) if isinstance(value, list) else value


def claims(schema: TypedSchema, config: Obj) -> FieldSet:
    return difference(owned_in_object(schema, config), NEVER_OWNED)


@LAWS
@given(st.data(), SPECS)
def test_the_short_way_of_writing_what_one_owns_leads_where_the_long_one_does(
    data: st.DataObject, structural: Structural
) -> None:
    short, long = World(structural), World(structural)
    for _ in range(4):
        manager = data.draw(st.sampled_from("ab"))
        new = data.draw(objects(structural))
        short.write(manager, copy.deepcopy(new))
        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(managers, "_after_own_changes", lambda *_: None)
            long.write(manager, copy.deepcopy(new))

        assert short.live == long.live


@LAWS
@given(st.data(), SPECS)
def test_applying_twice_changes_nothing(data: st.DataObject, structural: Structural) -> None:
    world = World(structural)
    world.write("base", data.draw(objects(structural)))
    config = data.draw(objects(structural))
    world.apply("one", config, force=True)
    before = copy.deepcopy(world.live)

    changed = world.apply("one", config)

    assert not changed
    assert world.live == before


@LAWS
@given(st.data(), SPECS)
def test_giving_up_restores_the_rest(data: st.DataObject, structural: Structural) -> None:
    world = World(structural)
    base, config = (data.draw(objects(structural, side)) for side in ("left", "right"))
    assume(claims_all(base) and claims_all(config))
    world.write("base", base)
    before, owners = world.content, world.owners
    world.apply("one", config)

    world.apply("one", empty_config())

    assert with_nulls(world.content) == with_nulls(before)
    assert world.owners == owners


@LAWS
@given(st.data(), SPECS)
def test_managers_of_different_fields_commute(data: st.DataObject, structural: Structural) -> None:
    base = data.draw(objects(structural))
    left, right = data.draw(objects(structural, "left")), data.draw(objects(structural, "right"))
    worlds = [World(structural), World(structural)]
    outcomes = []
    for world, turns in zip(worlds, ((left, right), (right, left)), strict=True):
        world.write("base", base)
        for config in turns:
            world.apply("left" if config is left else "right", config, force=True)
        outcomes.append((world.content, world.owners))

    assert outcomes[0] == outcomes[1]


@LAWS
@given(st.data(), SPECS)
def test_force_wins_and_takes_ownership(data: st.DataObject, structural: Structural) -> None:
    world = World(structural)
    world.apply("first", data.draw(objects(structural)))
    world.write("base", {**data.draw(objects(structural))})
    before, config = world.content, data.draw(objects(structural))

    world.apply("winner", config, force=True)

    after = world.content
    assert same_json_numbers(ordered(world.schema.root, merge(world.schema, after, config)), after)
    assert world.owners.get("winner", {}) == claims(world.schema, config)
    touched = compare(world.schema, before, after).touched()
    for manager, fields in world.owners.items():
        assert manager == "winner" or not intersection(fields, touched)


@LAWS
@given(st.data(), SPECS)
def test_without_force_other_managers_keep_their_values(
    data: st.DataObject, structural: Structural
) -> None:
    world = World(structural)
    world.write("base", data.draw(objects(structural)))
    before, owned = copy.deepcopy(world.live), world.owners["base"] if world.owners else {}
    try:
        world.apply("one", data.draw(objects(structural)))
    except ApplyConflict:
        assert world.live == before
    else:
        assert before is not None
        assert world.live is not None
        touched = compare(world.schema, before, world.live).touched()
        assert not intersection(owned, touched)


@LAWS
@given(st.data(), SPECS)
def test_every_leaf_is_owned_after_applying_the_whole(
    data: st.DataObject, structural: Structural
) -> None:
    obj = data.draw(objects(structural))
    world = World(structural)
    world.apply("one", obj)
    assume(claims_all(obj))

    owned = world.owners.get("one", {})

    assert not difference(leaves(present_in_object(world.schema, obj)), owned)


@LAWS
@given(st.data(), SPECS)
def test_only_the_writer_owns_the_fields_it_changed(
    data: st.DataObject, structural: Structural
) -> None:
    world = World(structural)
    world.write("base", data.draw(objects(structural)))
    assume(world.owners)
    before, new = world.content, data.draw(objects(structural))
    owned = world.owners["base"]
    change = compare(world.schema, before, new)

    world.write("writer", new)

    assert world.owners.get("writer", {}) == difference(change.touched(), NEVER_OWNED)
    lost = union(change.touched(), change.removed)
    assert world.owners.get("base", {}) == difference(owned, lost)


@LAWS
@given(st.data(), SPECS)
def test_no_change_is_found_exactly_between_equal_objects(
    data: st.DataObject, structural: Structural
) -> None:
    schema = compile_schema(structural)
    old, new = data.draw(objects(structural)), data.draw(objects(structural))

    found = compare(schema, old, new)

    assert found.empty() == same_json_numbers(ordered(schema.root, old), ordered(schema.root, new))
    assert compare(schema, old, copy.deepcopy(old)).empty()
    created = compare(schema, {}, old).added
    assert difference(created, NEVER_OWNED) == present_in_object(schema, old)


@LAWS
@given(st.data(), SPECS)
def test_sets_of_objects_round_trip(data: st.DataObject, structural: Structural) -> None:
    schema = compile_schema(structural)
    obj = data.draw(objects(structural))

    for fields in (owned_in_object(schema, obj), present_in_object(schema, obj)):
        assert parse(orjson.loads(text(fields))) == fields
        assert parse(orjson.loads(orjson.dumps(fields))) == fields
