"""Compiled schemas are kept as far as there is room: who is not used is made again."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from instar.kube.api.crd import read_crd
from instar.kube.schema.clean_cache import text_size
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.rule_engine import no_rules
from instar.server.lifecycle.embedded import Embedded, embedded
from instar.server.registry.resources import serving as serving_module
from instar.server.registry.resources.schema_eviction import CompiledSchemaBudget
from instar.server.registry.resources.serving import VersionServing
from tests.support import crds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class SchemaHolder:
    """Has nothing before it is used, as a version that is served."""

    def __init__(self, forms: CompiledSchemaBudget, weight: int = 1) -> None:
        self.hot, self.parked = False, False
        self._forms, self._weight = forms, weight

    def park(self) -> bool:
        found, self.hot = self.hot, False
        self.parked = self.parked or found
        return found

    def drop_parked(self) -> None:
        self.parked = False

    def use(self) -> None:
        if not self.hot:
            self.parked = False
            self._forms.keep(self, self._weight)
            self.hot = True


def _held(holders: Sequence[SchemaHolder]) -> int:
    return sum(holder.hot or holder.parked for holder in holders)


def test_used_schemas_stay_and_unused_ones_are_evicted() -> None:
    forms = CompiledSchemaBudget(4)
    holders = [SchemaHolder(forms) for _ in range(5)]

    for holder in holders:
        holder.use()
        holders[1].use()

    assert forms.weight == 4
    assert not holders[0].hot
    assert not holders[0].parked
    assert holders[1].hot
    assert holders[4].hot


def test_a_new_schema_counts_while_all_others_are_in_use() -> None:
    forms = CompiledSchemaBudget(8)
    busy, others = (
        [SchemaHolder(forms) for _ in range(8)],
        [SchemaHolder(forms) for _ in range(100)],
    )

    for other in others:
        for holder in busy:
            holder.use()
        other.use()

    assert _held(busy + others) == len(forms) == forms.weight == 8


def test_one_alone_is_kept_however_large() -> None:
    forms = CompiledSchemaBudget(4)
    holder = SchemaHolder(forms, 100)

    holder.use()

    assert holder.hot


def test_a_holder_that_is_gone_weighs_nothing() -> None:
    forms = CompiledSchemaBudget(4)
    holder = SchemaHolder(forms, 3)
    holder.use()

    del holder

    assert (forms.weight, len(forms)) == (0, 0)


def test_a_holder_that_makes_more_is_counted_once() -> None:
    forms = CompiledSchemaBudget(10)
    holder = SchemaHolder(forms)

    forms.keep(holder, 3)
    forms.keep(holder, 4)

    assert (forms.weight, len(forms)) == (4, 1)


def _schema(number: int) -> Mapping[str, Any]:
    field = {"type": "string", "maxLength": number + 1, "default": "a" * (number + 1)}
    return crds.fields(spec={**crds.fields(name=field), "default": {}})


async def _create(server: Embedded, number: int, name: str, spec: Any) -> int:
    path = f"/apis/forms.example.com/v1/namespaces/default/things{number}"
    body = {"metadata": {"name": name}, "spec": spec}
    body |= {"apiVersion": "forms.example.com/v1", "kind": f"Thing{number}"}
    return (await server.ask("POST", path, body)).status


async def _install(server: Embedded, count: int) -> None:
    for number in range(count):
        made = crds.crd(
            crds.version("v1", _schema(number)),
            group="forms.example.com",
            plural=f"things{number}",
            kind=f"Thing{number}",
        )
        assert (await server.ask("POST", CRDS, made)).status == 201


def test_a_schema_whose_forms_went_judges_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = CompiledSchemaBudget(2_000)
    monkeypatch.setattr(serving_module, "COMPILED_SCHEMAS", forms)
    compiled: list[int] = []

    def counted(*args: Any, **more: Any) -> Any:
        compiled.append(1)
        return compile_schema(*args, **more)

    monkeypatch.setattr(serving_module, "compile_schema", counted)

    async def run() -> tuple[list[int], list[int], int]:
        async with embedded() as server:
            await _install(server, 30)
            good, bad = [], []
            for turn in range(2):
                for number in range(30):
                    good.append(await _create(server, number, f"a{turn}", {}))
                    bad.append(await _create(server, number, "b", {"name": "a" * (number + 2)}))
            before = len(compiled)
            for turn in range(20):
                assert await _create(server, 29, f"c{turn}", {}) == 201
            return good, bad, len(compiled) - before

    good, bad, made_again = asyncio.run(run())

    assert set(good) == {201}
    assert set(bad) == {422}
    assert forms.weight <= 2_000
    assert made_again == 0


def _servings() -> list[VersionServing]:
    gc.collect()
    found = [one for one in gc.get_objects() if type(one) is VersionServing]
    return [one for one in found if one.api_version == "forms.example.com/v1"]


def _size_of_held(servings: Sequence[VersionServing]) -> int:
    """Of the schemas of which there is a compiled form anywhere."""
    names = {"compiled", "pipeline", "typed"}
    held = [one for one in servings if one._parked or one.__dict__.keys() & names]
    return sum(text_size(one.definition.schema or {}) for one in held)


def test_crds_in_constant_use_near_the_limit_stay_within_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forms, of_other_tests = CompiledSchemaBudget(2_000), _servings()
    monkeypatch.setattr(serving_module, "COMPILED_SCHEMAS", forms)

    async def run() -> int:
        async with embedded() as server:
            await _install(server, 40)
            for number in range(40):
                assert await _create(server, number, "a", {}) == 201
                for busy in range(10):
                    assert await _create(server, busy, f"b{number}", {}) == 201
            return _size_of_held([one for one in _servings() if one not in of_other_tests])

    held = asyncio.run(run())

    assert 0 < held <= forms.weight <= 2_000


def _version() -> VersionServing:
    crd = read_crd(crds.crd(crds.version("v1", _schema(1))))
    return VersionServing(crd, crd.versions[0], no_rules)


def test_a_form_that_was_long_in_the_making_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = CompiledSchemaBudget(10)
    monkeypatch.setattr(serving_module, "COMPILED_SCHEMAS", forms)
    slow, other = _version(), _version()

    def meanwhile(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(serving_module, "compile_schema", compile_schema)
        assert other.compiled
        return compile_schema(*args, **more)

    monkeypatch.setattr(serving_module, "compile_schema", meanwhile)
    assert slow.compiled

    assert "compiled" in slow.__dict__
    assert len(forms) == 1
    assert not other._parked
    assert "compiled" not in other.__dict__


def test_a_schema_in_use_again_is_counted_though_it_was_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    version, forms = _version(), CompiledSchemaBudget(2_000)
    assert version.compiled
    version.park()
    monkeypatch.setattr(serving_module, "COMPILED_SCHEMAS", forms)

    assert version.compiled

    assert len(forms) == 1


def test_a_parked_schema_is_not_compiled_again_for_another_version() -> None:
    version = _version()
    compiled = version.compiled
    version.park()

    assert version.typed

    assert version.compiled is compiled
