"""CRDs that once hurt: their columns, their rules, their size. /livez is asked meanwhile."""

from __future__ import annotations

import time
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.robust.conftest import CRDS, GROUP
from tests.robust.victim import Victim
from tests.support import crds

TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def made(victim: Victim, plural: str, schema: Object, **version: Any) -> tuple[int, str]:
    """The status of the creation, and where its objects are."""
    kind = plural[:-1].capitalize()
    group = f"{plural}.{GROUP}"
    stored = crds.version("v1", schema, **version)
    crd = crds.crd(stored, group=group, plural=plural, kind=kind)
    status = victim.request("POST", CRDS, crd).status
    return status, f"/apis/{group}/v1/namespaces/default/{plural}"


def created(victim: Victim, path: str, plural: str, **members: Any) -> int:
    _, _, group, version, *_ = path.split("/")
    frame = {"apiVersion": f"{group}/{version}", "kind": plural[:-1].capitalize()}
    return victim.request("POST", path, {**frame, "metadata": {"name": "a"}, **members}).status


@pytest.mark.parametrize(
    ("plural", "path"),
    [
        ("manysteps", ".spec" + "[0]" * 40_000),
        ("somesteps", ".spec" + "[0]" * 1_000),
        ("noslices", ".spec.a[0:6:0]"),
        ("spaces", ".spec.a[?(@.b==" + " " * 20_000 + "1)]"),
        ("quotes", ".spec['" + "\\'" * 20_000),
        ("unions", ".spec[" + "'a'," * 10_000 + "'a']"),
        ("descents", ".spec" + "..a" * 300),
    ],
)
def test_a_column_costs_its_own_cell_at_most(victim: Victim, plural: str, path: str) -> None:
    column = {"name": "c", "type": "string", "jsonPath": path}
    with victim.watched():
        status, where = made(victim, plural, OPEN, additionalPrinterColumns=[column])
        assert status in (201, 422)
        if status == 201:
            assert created(victim, where, plural, spec={"a": [{"b": 1}] * 50}) == 201
            assert victim.request("GET", where, headers=TABLE).status == 200


def test_four_hundred_long_rules(victim: Victim) -> None:
    long = " && ".join(f"self.name != 'name number {at}'" for at in range(30))
    rules = [{"rule": f"{long} && self.name != '{at}'"} for at in range(400)]
    spec: Object = {**crds.fields(name={"type": "string", "maxLength": 20})}
    spec["x-kubernetes-validations"] = rules
    with victim.watched():
        status, where = made(victim, "ruleds", crds.fields(spec=spec))
        assert status in (201, 422)
        if status == 201:
            assert created(victim, where, "ruleds", spec={"name": "x"}) == 201


@pytest.mark.parametrize(
    "call", ["int", "isQuantity", "isSemver", "double", "duration", "quantity"]
)
def test_numbers_of_very_many_digits_in_rules(victim: Victim, call: str) -> None:
    plural = f"{call.lower()}digits"
    spec: Object = {**crds.fields(text={"type": "string", "maxLength": 100_000})}
    spec["x-kubernetes-validations"] = [{"rule": f"string({call}(self.text)) != 'x'"}]
    if call in ("duration", "quantity"):
        spec["x-kubernetes-validations"] = [{"rule": f"{call}(self.text) != {call}('1')"}]
    status, where = made(victim, plural, crds.fields(spec=spec))
    assert status in (201, 422)
    if status == 201:
        with victim.watched():
            assert created(victim, where, plural, spec={"text": "1" * 50_000}) in (201, 422)


def test_one_large_definition_does_not_slow_down_its_neighbours(victim: Victim) -> None:
    wide = {f"property{at}": {"type": "string"} for at in range(30_000)}
    large = crds.crd(
        crds.version("v1", crds.fields(spec=crds.fields(**wide))),
        group=f"wide.{GROUP}",
        plural="wides",
        kind="Wide",
    )
    small = crds.crd(group=f"wide.{GROUP}", plural="smalls", kind="Small")
    with victim.watched():
        assert victim.request("POST", CRDS, large).status == 201
        assert victim.request("POST", CRDS, small).status == 201
        took = []
        for number in range(5):
            began = time.monotonic()
            patch = {"metadata": {"annotations": {"n": str(number)}}}
            media = "application/merge-patch+json"
            answer = victim.request(
                "PATCH", f"{CRDS}/smalls.wide.{GROUP}", patch, content_type=media
            )
            assert answer.status == 200, answer.text
            took.append(time.monotonic() - began)
        assert min(took) < 0.2, took
        for path in (f"/apis/wide.{GROUP}/v1", f"/openapi/v3/apis/wide.{GROUP}/v1", "/openapi/v2"):
            assert victim.request("GET", path).status == 200
    victim.request("DELETE", f"{CRDS}/wides.wide.{GROUP}")
