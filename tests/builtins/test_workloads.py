"""Pods, what is made of pod templates, and the verbs around them: each recorded request is answered
as kube-apiserver answered it, but for the lines named here."""

from __future__ import annotations

import re

import pytest

from tests.builtins.replay import RECORDINGS, Replayed, recorded

_KINDS = {
    "defaults": (
        "pod", "podtemplate", "replicationcontroller", "deployment", "statefulset", "daemonset",
        "replicaset", "controllerrevision", "job", "cronjob", "hpa", "pdb",
    ),
    "invalid": (
        "pod", "rc", "deploy", "sts", "ds", "rs", "cr", "job", "cj", "hpa", "pdb", "binding",
        "eviction",
    ),
    "patch": (
        "pod", "scale", "delete", "put", "generation", "statusmeta", "apply", "smp", "json",
        "select",
    ),
}  # fmt: skip
_OTHERS = re.compile(
    r"(smp|apply)\.(service|crd|secret|namespace)|(generation|put)\.\d+\.(validating|webhook)"
)
"""Of those sequences, what is about kinds that have tests of their own."""

EXCEPTIONS = {
    "defaults pod.overheadRejected": "an empty map that was sent is the same as none here",
    "invalid pod.create.negQuantity": "upstream walks a Go map: the order is its chance",
    "patch apply.deployment.11.scale.mf": "an entry written through scale has its time here",
    "patch apply.deployment.20.missingKey": "refused by the schema before the rules are asked",
    "patch apply.deployment.24.applyAfterClear": "a field set says more of what it contains",
}


def _lines() -> list[str]:
    if not RECORDINGS.exists():
        return []
    return [
        f"{name} {row['id']}"
        for name, kinds in _KINDS.items()
        for row in recorded(name)
        if row["id"].split(".")[0] in kinds and _OTHERS.match(row["id"]) is None
    ]


@pytest.mark.parametrize("line", _lines())
def test_a_recorded_request_is_answered_as_recorded(replayed: Replayed, line: str) -> None:
    if line in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[line])

    assert not replayed[line]


def test_no_exception_outlives_its_reason(replayed: Replayed) -> None:
    healed = [line for line in EXCEPTIONS if not replayed[line]]

    assert not healed
