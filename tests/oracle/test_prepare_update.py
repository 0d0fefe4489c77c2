"""What an update keeps of the stored object, and when it counts as a new generation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from instar.base.json_values import Object, copy_json, same_json
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.pipeline import SchemaPipeline
from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.resources.strategy import Strategy
from tests.oracle.cases import Case, Outcome, assert_agreement


def judge(case: Case) -> Outcome:
    new, old = _request(case.ask["object"]), _request(case.ask["oldObject"])
    pipeline = SchemaPipeline(
        compile_schema(None), api_version="", kind="", has_status=case.ask["statusSubresource"]
    )
    version = cast(VersionServing, SimpleNamespace(pipeline=pipeline))
    if case.ask["subresource"]:
        Strategy().prepare_subresource(case.ask["subresource"], new, old, version)
    else:
        Strategy().prepare_update(new, old, version)
    ours = _bare(new)
    equal = same_json(ours, _bare(case.answer["object"]))
    return Outcome(equal, equal, ours)


def _request(obj: Any) -> Object:
    """Every object that comes this far has metadata."""
    return {"metadata": {}, **copy_json(obj)}


def _bare(obj: Object) -> Object:
    empty: tuple[Any, ...] = (None, {})
    return {name: value for name, value in obj.items() if value not in empty}


def test_prepared_updates_as_upstream() -> None:
    assert_agreement("prepare-update", judge)
