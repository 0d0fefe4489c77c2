"""Compiled schemas are kept as far as there is room: who is not used is made again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from instar.registry.resources import serving as serving_module
from instar.registry.resources.forms import Forms
from instar.schema.compiled import compile_schema
from instar.server.life.embedded import Embedded, embedded
from tests.support import crds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Holder:
    def __init__(self) -> None:
        self.hot, self.aside = True, False

    def put_aside(self) -> bool:
        found, self.hot = self.hot, False
        self.aside = self.aside or found
        return found

    def let_go(self) -> None:
        self.aside = False

    def use(self, forms: Forms) -> None:
        if self.aside:
            self.hot, self.aside = True, False
            forms.used(self)


def test_who_is_used_stays_and_who_is_not_goes() -> None:
    forms, holders = Forms(4), [Holder() for _ in range(5)]

    for holder in holders:
        forms.keep(holder, 1)
        holders[1].use(forms)
        holders[4].use(forms)

    assert forms.weight == 4
    assert not holders[0].hot
    assert not holders[0].aside
    assert holders[1].hot
    assert holders[4].hot


def test_one_alone_is_kept_however_large() -> None:
    forms, holder = Forms(4), Holder()

    forms.keep(holder, 100)

    assert holder.hot


def test_a_holder_that_is_gone_weighs_nothing() -> None:
    forms, holder = Forms(4), Holder()
    forms.keep(holder, 3)

    del holder

    assert (forms.weight, len(forms)) == (0, 0)


def test_a_holder_that_makes_more_is_counted_once() -> None:
    forms, holder = Forms(10), Holder()

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


def test_a_schema_whose_forms_went_judges_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = Forms(2_000)
    monkeypatch.setattr(serving_module, "FORMS", forms)
    compiled: list[int] = []

    def counted(*args: Any, **more: Any) -> Any:
        compiled.append(1)
        return compile_schema(*args, **more)

    monkeypatch.setattr(serving_module, "compile_schema", counted)

    async def run() -> tuple[list[int], list[int], int]:
        async with embedded() as server:
            for number in range(30):
                made = crds.crd(
                    crds.version("v1", _schema(number)),
                    group="forms.example.com",
                    plural=f"things{number}",
                    kind=f"Thing{number}",
                )
                assert (await server.ask("POST", CRDS, made)).status == 201
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
