"""Server, reviewer and ``instar check`` give one answer: the same texts, the same object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instar.kube.api.crd import read_crd
from instar.kube.schema.generation.objects import objects
from instar.kube.schema.structure.parse import structural
from tests.parity.asking import (
    Court,
    Told,
    assert_one_answer,
    created_by_check,
    updated_by_the_judge,
)
from tests.parity.schemas import SCALE, SCHEMA, crd, full_crd, plain_crd
from tests.rest.support import KeptAlive
from tests.reviewer.corpus import crds
from tests.support.corpus import CORPUS, needs_corpus
from tests.support.server import LiveServer

SKIPPED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation"
)
POD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.fixture(scope="module")
def kept_alive(server: LiveServer) -> Iterator[LiveServer]:
    client = KeptAlive(server)
    yield client
    client.close()


@pytest.fixture(scope="module")
def plain(kept_alive: LiveServer) -> Court:
    return Court(kept_alive, plain_crd("plain.parity.io"))


@pytest.fixture(scope="module")
def full(kept_alive: LiveServer) -> Court:
    return Court(kept_alive, full_crd("full.parity.io"))


@pytest.fixture(params=["plain", "full"])
def court(request: pytest.FixtureRequest) -> Court:
    found: Court = request.getfixturevalue(request.param)
    return found


def fields(told: Told) -> list[str]:
    return [text.partition(": ")[0] for text in told.refusals]


# --- specs ---------------------------------------------------------------------------------------


ACCEPTED: dict[str, Any] = {
    "nothing": {},
    "a null where a default is": {"must": None},
    "a null that is allowed": {"maybe": None},
    "a null that is not": {"form": None},
    "nulls in a list's items": {"ports": [{"name": "a", "number": None}]},
    "nulls in what is preserved": {"open": {"a": None}},
    "unknown fields": {"zz": 1, "ports": [{"name": "a", "zz": {}}], "inner": {"x": "", "zz": 1}},
    "an int or a string": {"port": "http"},
    "a large float": {"share": 1e21},
    "no replicas": {"open": {"replicas": None}},
    "an embedded resource": {"em": {**POD, "metadata": {"name": "p", "zz": 1}, "more": {}}},
    "an embedded resource's empty metadata": {"em": {**POD, "metadata": None}},
    "embedded resources in a list": {"ems": [{**POD, "metadata": {"labels": {}}}]},
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED)
def test_a_good_spec_is_kept_alike(court: Court, spec: dict[str, Any]) -> None:
    assert assert_one_answer(court, court.obj(spec=spec)).refusals == []


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a wrong type": ({"form": 1}, ["spec.form", "<nil>"]),
    "a null item": ({"few": [None]}, ["spec.few[0]", "<nil>"]),
    "a missing field": ({"inner": {}}, ["spec.inner.x", "<nil>"]),
    "a text too long": ({"short": "long"}, ["spec.short", "<nil>"]),
    "too many items": ({"few": ["a", "b", "c"]}, ["spec.few", "<nil>"]),
    "too many members": ({"labels": {"a": "", "b": "", "c": ""}}, ["spec.labels", "<nil>"]),
    "not in the enum": ({"one": "c"}, ["spec.one", "<nil>"]),
    "against a pattern": ({"form": "A"}, ["spec.form"]),
    "against a rule": ({"count": 13}, ["spec"]),
    "against a pattern and a rule": ({"form": "A", "count": 13}, ["spec.form", "spec"]),
    "above the maximum and against a rule": (
        {"count": 21, "must": "not"},
        ["spec.count", "spec"],
    ),
    "an enum and a rule": ({"one": "c", "count": 13}, ["spec.one", "<nil>"]),
    "twice in a set": ({"set": ["a", "a"], "count": 13}, ["spec.set[1]", "spec"]),
    "twice in a map": (
        {"ports": [{"name": "a"}, {"name": "a"}], "count": 13},
        ["spec.ports[1]", "spec"],
    ),
    "negative replicas and a rule": (
        {"open": {"replicas": -1}, "count": 13},
        [".spec.open.replicas", "spec"],
    ),
    "too many replicas": ({"open": {"replicas": 2**31}}, [".spec.open.replicas"]),
    "replicas that are a text": ({"open": {"replicas": "3"}}, [".spec.open.replicas"]),
    "replicas that are a flag": ({"open": {"replicas": True}}, [".spec.open.replicas"]),
    "replicas that are a fraction": ({"open": {"replicas": 1.5}}, [".spec.open.replicas"]),
    "an embedded resource without a type": (
        {"em": {}},
        ["spec.em.apiVersion", "spec.em.kind", "<nil>"],
    ),
    "an embedded resource of a bad name": (
        {"em": {**POD, "metadata": {"name": "a/b"}}, "count": 13},
        ["spec.em.metadata.name", "spec"],
    ),
    "an embedded kind that is a number": ({"em": {**POD, "kind": 1}}, ["spec.em.kind"]),
    "embedded labels that are none": (
        {"ems": [{**POD, "metadata": {"labels": {"a": 1}}}]},
        ["spec.ems[0].metadata"],
    ),
    "everything": (
        {
            "form": "A",
            "open": {"replicas": -1},
            "em": {**POD, "metadata": {"name": "a/b"}},
            "set": ["a", "a"],
            "count": 13,
        },
        ["spec.form", ".spec.open.replicas", "spec.em.metadata.name", "spec.set[1]", "spec"],
    ),
}


@pytest.mark.parametrize(("spec", "wrong"), REFUSED.values(), ids=REFUSED)
def test_a_bad_spec_is_refused_alike(court: Court, spec: dict[str, Any], wrong: list[str]) -> None:
    assert fields(assert_one_answer(court, court.obj(spec=spec))) == wrong


def test_pruned_fields_are_reported_in_the_same_words(court: Court) -> None:
    told = assert_one_answer(court, court.obj(spec={"one": "c"}))

    assert told.refusals[-1] == SKIPPED


@pytest.mark.parametrize("spec", [1, "x", [], None, {"must": {}}])
def test_a_spec_of_another_type_is_refused_alike(court: Court, spec: Any) -> None:
    assert_one_answer(court, court.obj(spec=spec))


METADATA: dict[str, dict[str, Any]] = {
    "no name": {"name": ""},
    "a bad name": {"name": "A_"},
    "a name that is none": {"name": 1},
    "unknown members": {"zz": 1},
    "bad labels": {"labels": {"-": "a b"}},
    "labels that are none": {"labels": {"a": 1}},
    "two controllers": {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "A", "name": name, "uid": name, "controller": True}
            for name in ("a", "b")
        ]
    },
    "a bad finalizer": {"finalizers": ["a b"]},
    "a generation": {"generation": -5},
}


@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
def test_metadata_is_judged_alike(court: Court, metadata: dict[str, Any]) -> None:
    obj = court.obj(spec={"count": 13})

    assert_one_answer(court, {**obj, "metadata": {**obj["metadata"], **metadata}})


def test_another_kind_is_refused_alike(court: Court) -> None:
    obj = {**court.obj(spec={"form": 1}), "kind": "Other"}

    server, check = court.created_by_the_server(obj), created_by_check(court, obj)

    # As upstream: the schema is skipped, and rules are evaluated all the same.
    assert check.refusals == server.refusals
    assert server.refusals[0] == 'kind: Invalid value: "Other": must be Thing'


# --- statuses ------------------------------------------------------------------------------------


STATUSES: dict[str, Any] = {
    "good": {"phase": "up", "zz": 1},
    "an enum and a rule": {"phase": "odd", "seen": 13},
    "a wrong type": {"phase": 1},
    "too long": {"note": "long"},
    "a rule": {"seen": 13},
    "twice in a set": {"set": ["a", "a"], "seen": 13},
    "negative replicas": {"open": {"replicas": -1}},
    "a selector that is a number": {"open": {"selector": 5}, "seen": 13},
    "an embedded resource without a type": {"em": {}},
    "an embedded kind that is a number": {"em": {"kind": 1}},
    "no object": "x",
    "null": None,
}


@pytest.mark.parametrize("status", STATUSES.values(), ids=STATUSES)
@pytest.mark.parametrize("spec", [{}, {"form": "A"}, {"open": {"replicas": -1}}])
def test_a_status_is_judged_alike(court: Court, spec: Any, status: Any) -> None:
    assert_one_answer(court, court.obj(spec=spec, status=status))


# --- updates -------------------------------------------------------------------------------------

LOOSE = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
Change = Callable[[dict[str, Any]], None]


def setting(*path: str, to: Any) -> Change:
    def change(obj: dict[str, Any]) -> None:
        for name in path[:-1]:
            obj = obj[name]
        obj[path[-1]] = to

    return change


UPDATES: dict[str, tuple[list[Change], list[str]]] = {
    "nothing touched": ([], []),
    "only a label touched": ([setting("metadata", "labels", to={"a": "b"})], []),
    "something good added": ([setting("spec", "maybe", to="x")], []),
    "a bad enum made another bad one": ([setting("spec", "one", to="d")], ["spec.one", "<nil>"]),
    "something bad added": ([setting("spec", "short", to="long")], ["spec.short", "<nil>"]),
    "a rule broken": ([setting("spec", "must", to="not")], ["spec"]),
    "negative replicas": (
        [setting("spec", "open", to={"replicas": -1})],
        [".spec.open.replicas"],
    ),
    "a bad label": (
        [setting("metadata", "labels", to={"-": "b"})],
        ["metadata.labels"],
    ),
    "a bad status left alone": ([setting("spec", "form", to="b")], []),
    "the status made another bad one": (
        [setting("status", "phase", to="odder")],
        ["status.phase", "<nil>"],
    ),
    "the status went back": ([setting("status", "seen", to=4)], ["status.seen"]),
    "spec and status": (
        [setting("spec", "maybe", to="y"), setting("status", "seen", to=4)],
        ["status.seen"],
    ),
}


@pytest.mark.parametrize(("changes", "wrong"), UPDATES.values(), ids=UPDATES)
@pytest.mark.parametrize("has_status", [False, True])
def test_an_update_is_forgiven_alike(
    kept_alive: LiveServer,
    has_status: bool,
    changes: list[Change],
    wrong: list[str],
) -> None:
    subresources = {"scale": SCALE, **({"status": {}} if has_status else {})}
    number = list(UPDATES.values()).index((changes, wrong))
    group = f"u{number}-{int(has_status)}.parity.io"
    court = Court(kept_alive, crd(group, LOOSE, subresources=subresources))
    stored = court.obj(
        spec={"must": "be", "one": "c"},
        status={"phase": "odd", "seen": 5},
    )
    assert court.created_by_the_server(stored).refusals == []
    court.change(crd(group, SCHEMA, subresources=subresources))
    before = court.read(stored["metadata"]["name"])
    after = deepcopy(before)
    for change in changes:
        change(after)

    server, judge = court.updated_by_the_server(after), updated_by_the_judge(court, before, after)

    assert judge == server
    assert fields(server) == wrong


# --- whatever fits the schema, and what nearly does ----------------------------------------------

ODD: list[Any] = [None, "", "A", "long text", 0, -1, 13, 2**31, 1.5, True, [], ["a", "a"], {}, POD]


@st.composite
def nearly(draw: Callable[[Any], Any], made: Any) -> dict[str, Any]:
    """A generated object with up to three of its members made odd."""
    obj: dict[str, Any] = deepcopy(draw(made))
    for _ in range(draw(st.integers(0, 3))):
        places = list(_places(obj, ()))
        if not places:
            break
        *parents, last = draw(st.sampled_from(places))
        holder: Any = obj
        for step in parents:
            holder = holder[step]
        holder[last] = deepcopy(draw(st.sampled_from(ODD)))
    if draw(st.booleans()):
        spec = obj.get("spec")
        if isinstance(spec, dict):
            spec["zz"] = 1
    return obj


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    members: Any = ()
    if isinstance(value, dict):
        members = value.items() if path else ((k, v) for k, v in value.items() if _content(k))
    elif isinstance(value, list):
        members = enumerate(value)
    for step, item in members:
        yield (*path, step)
        yield from _places(item, (*path, step))


def _content(name: str) -> bool:
    return name not in ("apiVersion", "kind", "metadata")


MADE = objects(structural(SCHEMA), api_version="replaced", kind="replaced")
FEW = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FEW
@given(nearly(MADE))
def test_any_object_gets_one_answer_from_every_part(
    plain: Court, full: Court, made: dict[str, Any]
) -> None:
    for court in (plain, full):
        head = court.obj()
        metadata = {**made["metadata"], **head["metadata"]}
        assert_one_answer(court, {**deepcopy(made), **head, "metadata": metadata})


REAL = {
    "certificates.cert-manager.io": "cert-manager",
    "httproutes.gateway.networking.k8s.io": "gateway-api",
    "gitrepositories.source.toolkit.fluxcd.io": "flux-source",
}


@needs_corpus
@pytest.mark.parametrize("name", REAL)
def test_objects_of_real_crds_get_one_answer(kept_alive: LiveServer, name: str) -> None:
    project = CORPUS / REAL[name]
    release = sorted(item for item in project.iterdir() if item.is_dir())[-1]
    real = crds(release)[name]
    real = {**real, "metadata": {"name": name, "annotations": real["metadata"].get("annotations")}}
    real.pop("status", None)
    version = read_crd(real).storage_version()
    court = Court(kept_alive, real, version)
    made = objects(
        court.check.compiled.structural, api_version=court.check.api_version, kind="replaced"
    )

    @settings(FEW, max_examples=25)
    @given(nearly(made))
    def one_answer(drawn: dict[str, Any]) -> None:
        head = court.obj()
        metadata = {**drawn["metadata"], **head["metadata"]}
        assert_one_answer(court, {**deepcopy(drawn), **head, "metadata": metadata})

    one_answer()
