"""CRDs between their versions, and their defaults."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object, same_json
from instar.kube.api.crd import GROUP
from instar.kube.api.crd_codec import decode, from_internal, to_internal
from instar.kube.crds.defaults import with_defaults
from tests.oracle.cases import Case, Outcome, assert_agreement


def judge(case: Case) -> Outcome:
    ask = case.ask
    if ask["check"] == "default":
        ours = with_defaults(_read(ask["crd"], ask["version"]))
    else:
        internal = to_internal(_read(ask["crd"], ask["from"]))
        ours = from_internal(internal, ask["to"])
    shown = _bare({name: ours[name] for name in ("metadata", "spec", "status") if name in ours})
    equal = same_json(shown, _bare(case.answer["crd"]))
    return Outcome(equal, equal, shown)


def _read(crd: Object, version: str) -> Object:
    typed = {"apiVersion": f"{GROUP}/{version}", "kind": "CustomResourceDefinition", **crd}
    return decode(typed, version).obj


def _bare(value: Any) -> Any:
    """Without empty values, which the recording does not tell apart."""
    if isinstance(value, dict):
        kept = {name: _bare(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in ("", None, [], {}, False)}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def test_crds_are_converted_as_upstream() -> None:
    assert_agreement("crd-conversion", judge)
