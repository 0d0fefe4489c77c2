"""Spliced, cached and converted answers equal those computed from scratch, whatever the CRD."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from instar.base.json_values import Object
from tests.support.crds import crd, version
from tests.support.server import Answer, LiveServer
from tests.support.webhook import Webhook
from tests.webhooks import reference
from tests.webhooks.support import Watching

VERSIONS = ("v1", "v2", "v3")
_groups = itertools.count(1)
_WORD = st.sampled_from(["", "x", "y"])
_STRINGS = st.fixed_dictionaries(
    {"type": st.just("string")}, optional={"default": _WORD, "nullable": st.just(True)}
)
_NUMBERS = st.fixed_dictionaries(
    {"type": st.just("integer")}, optional={"default": st.integers(0, 3)}
)


def _some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Object]:
    """An object schema with any subset of these fields: versions differ in what they know."""
    return st.fixed_dictionaries({}, optional=fields).map(
        lambda properties: {"type": "object", "properties": properties}
    )


_INNER = _some({"x": _STRINGS, "n": _NUMBERS})
_SPEC = _some(
    {
        "a": _STRINGS,
        "z": _STRINGS,
        "n": _NUMBERS,
        "inner": _INNER,
        "list": _INNER.map(lambda items: {"type": "array", "items": items}),
        "map": _NUMBERS.map(
            lambda number: {"type": "object", "additionalProperties": {"type": number["type"]}}
        ),
        "open": st.just({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    }
)
_INNER_VALUE = st.fixed_dictionaries(
    {}, optional={"x": _WORD | st.none(), "n": st.integers(0, 9), "unknown": st.just(1)}
)
_VALUE = st.fixed_dictionaries(
    {},
    optional={
        "a": _WORD | st.none(),
        "z": _WORD,
        "n": st.integers(0, 9) | st.none(),
        "inner": _INNER_VALUE,
        "list": st.lists(_INNER_VALUE, max_size=2),
        "map": st.dictionaries(st.sampled_from(["k", "l"]), st.integers(0, 3), max_size=2),
        "open": _INNER_VALUE,
        "unknown": st.just({"deep": [1]}),
    },
)
_LABELS = st.dictionaries(st.just("to"), st.sampled_from(VERSIONS), max_size=1)
_VERSION = st.sampled_from(VERSIONS)
_STEP = st.one_of(
    st.tuples(st.just("write"), _VERSION, st.sampled_from("pq"), _VALUE, _LABELS),
    st.tuples(st.just("store at"), _VERSION),
    st.tuples(st.just("schema"), _VERSION, _SPEC),
)


def swap(obj: Object, api_version: str) -> Object:
    """Moves fields, leaves rubbish and marks the object: all a webhook may do, and a bit more."""
    spec = dict(obj.get("spec") or {})
    moved = {new: spec.pop(old) for old, new in (("a", "z"), ("z", "a")) if old in spec}
    labels = {**(obj["metadata"].get("labels") or {}), "to": api_version.rpartition("/")[2]}
    metadata = {**obj["metadata"], "labels": labels, "finalizers": ["ignored"]}
    spec |= {**moved, "rubbish": True}
    return {**obj, "apiVersion": api_version, "metadata": metadata, "spec": spec}


def relabel(obj: Object, api_version: str) -> Object:
    return {**obj, "apiVersion": api_version}


@pytest.fixture(scope="module")
def swapping() -> Iterator[Webhook]:
    with Webhook(swap) as webhook:
        yield webhook


class Subject:
    """A CRD under test, and what its answers must be."""

    def __init__(self, server: LiveServer, specs: list[Object], conversion: Object) -> None:
        self.server = server
        self.group = f"r{next(_groups)}.{conversion['strategy'].lower()}.example.com"
        self.specs = dict(zip(VERSIONS, specs, strict=True))
        self.storage = "v1"
        self.convert = swap if conversion["strategy"] == "Webhook" else relabel
        self.crd = crd(
            *self._versions(),
            group=self.group,
            plural="things",
            kind="Thing",
            conversion=conversion,
        )
        server.create_crd(self.crd)
        self._connection = server.connection()

    def _schema(self, version: str) -> Object:
        return {"type": "object", "properties": {"spec": self.specs[version]}}

    def _versions(self) -> list[Object]:
        return [
            version(
                name,
                self._schema(name),
                storage=name == self.storage,
                selectableFields=[{"jsonPath": ".spec.a"}] if self._selects(name) else [],
            )
            for name in VERSIONS
        ]

    def _selects(self, version: str) -> bool:
        # Upstream hoists what all versions have in common and refuses a selectable field that is
        # hoisted where schemas are not, or the other way round.
        alike = all(spec == self.specs["v1"] for spec in self.specs.values())
        return (alike or version != "v3") and "a" in self.specs[version]["properties"]

    def change(self) -> None:
        name = self.crd["metadata"]["name"]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        body = {"spec": {"versions": self._versions()}}
        answer = self.ask("PATCH", path, body)
        assert answer.status == 200, answer.text[:500]

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One connection for all: an example makes a hundred requests."""
        sent = {"Authorization": f"Bearer {self.server.token}", **(headers or {})}
        sent["Content-Type"] = (
            "application/merge-patch+json" if method == "PATCH" else "application/json"
        )
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, body=text, headers=sent)
        answer = self._connection.getresponse()
        return Answer(answer.status, answer.getheaders(), answer.read())

    def close(self) -> None:
        self._connection.close()

    def path(self, version: str, name: str = "") -> str:
        path = f"/apis/{self.group}/{version}/namespaces/default/things"
        return f"{path}/{name}" if name else path

    def write(self, version: str, name: str, spec: Object, labels: Object) -> None:
        kind = {"apiVersion": f"{self.group}/{version}", "kind": "Thing"}
        body: Object = {**kind, "metadata": {"name": name, "labels": labels}, "spec": spec}
        present = self.ask("GET", self.path(version, name))
        if present.status == 200:
            body["metadata"]["resourceVersion"] = present.json["metadata"]["resourceVersion"]
            answer = self.ask("PUT", self.path(version, name), body)
        else:
            answer = self.ask("POST", self.path(version), body)
        assert answer.status in (200, 201), answer.text[:500]
        assert _bare(answer.json) == self.expected(version, name)

    def expected(self, version: str, name: str) -> Object:
        stored = self.server.stored(f"{self.group}/things/default/{name}")
        schemas = {f"{self.group}/{each}": self._schema(each) for each in VERSIONS}
        return reference.read(stored, f"{self.group}/{version}", schemas, self.convert)

    def check(self, version: str, names: list[str]) -> None:
        wanted = [self.expected(version, name) for name in names]
        for headers in ({}, {"X-Instar-Conversion-Cache": "bypass"}, {}):
            for name, obj in zip(names, wanted, strict=True):
                got = self.ask("GET", self.path(version, name), headers=headers)
                assert _bare(got.json) == obj
            assert self._list(version, "", headers) == wanted
        self._check_selectors(version, wanted)
        watch = Watching(self.server, self.path(version))
        events = watch.wait_for(lambda lines: len(lines) == len(names)) if names else []
        watch.close()
        assert [_bare(event["object"]) for event in events] == wanted

    def _check_selectors(self, version: str, wanted: list[Object]) -> None:
        for value in VERSIONS:
            labelled = [obj for obj in wanted if _label(obj) == value]
            assert self._list(version, f"?labelSelector=to={value}") == labelled
            assert self._list(version, f"?labelSelector=to={value}&limit=1") == labelled[:1]
        if self._selects(version):
            chosen = [obj for obj in wanted if (obj.get("spec") or {}).get("a") == "x"]
            assert self._list(version, "?fieldSelector=spec.a=x") == chosen

    def _list(self, version: str, query: str, headers: dict[str, str] | None = None) -> list[Any]:
        answer = self.ask("GET", self.path(version) + query, headers=headers)
        assert answer.status == 200, answer.text[:500]
        return [_bare(item) for item in answer.json["items"]]


def _label(obj: Object) -> Any:
    return (obj["metadata"].get("labels") or {}).get("to")


def _bare(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata}


def _run(subject: Subject, steps: list[Any]) -> None:
    with contextlib.closing(subject):
        _follow(subject, steps)


def _follow(subject: Subject, steps: list[Any]) -> None:
    names: list[str] = []
    for action, *rest in steps:
        if action == "write":
            subject.write(*rest)
            names = sorted({*names, rest[1]})
        elif action == "store at":
            [subject.storage] = rest
            subject.change()
        else:
            version, spec = rest
            subject.specs[version] = spec
            subject.change()
    for version in VERSIONS:
        subject.check(version, names)


_settings = settings(
    max_examples=12,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
_SPECS = st.lists(_SPEC, min_size=3, max_size=3)
_STEPS = st.lists(_STEP, min_size=1, max_size=6)


@_settings
@given(specs=_SPECS, steps=_STEPS)
def test_with_strategy_none(server: LiveServer, specs: list[Object], steps: list[Any]) -> None:
    _run(Subject(server, specs, {"strategy": "None"}), steps)


@_settings
@given(specs=_SPECS, steps=_STEPS)
def test_with_a_webhook(
    server: LiveServer, swapping: Webhook, specs: list[Object], steps: list[Any]
) -> None:
    _run(Subject(server, specs, swapping.conversion()), steps)


@_settings
@given(spec=_SPEC, steps=_STEPS)
def test_with_versions_that_differ_in_name_only(
    server: LiveServer, spec: Object, steps: list[Any]
) -> None:
    alike = [step for step in steps if step[0] != "schema"]
    _run(Subject(server, [spec] * 3, {"strategy": "None"}), alike)
