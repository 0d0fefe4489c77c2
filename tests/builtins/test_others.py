"""Recorded requests for every kind that is no workload, sent again in order to one server."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.builtins.replay import RECORDINGS, differences, prepare, recorded, send
from tests.support.server import live_server

pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recordings are not here")

_WORKLOADS = frozenset(
    {
        "pod", "podtemplate", "replicationcontroller", "deployment", "statefulset", "daemonset",
        "replicaset", "controllerrevision", "job", "cronjob", "hpa", "pdb", "generic", "rc",
        "deploy", "sts", "ds", "rs", "cr", "cj", "binding", "eviction", "smp", "merge", "json",
        "apply", "scale", "generation", "delete", "put", "select", "statusmeta",
    }
)  # fmt: skip
"""First parts of ids whose lines are other tests' matter."""
_BY_CHANCE = "the recorded server chose the address itself"
_EMPTIED = "our controller empties and removes a namespace at once; none did in the recording"
_NO_TOKENS = "no tokens for service accounts yet"
_EXCEPTIONS: Mapping[str, str] = {
    "persistentvolume.sources.rbd": "no warning about volumes that no longer work",
    "storageversionmigration.notServed": "we serve storage migrations",
    "certificatesigningrequest.minimal": "the caller has another name",
    "certificatesigningrequest.rich": "the caller has another name",
    "cm.create.badKey": "Go's maps have no order: ours are sorted",
    "cm.create.tooBig": "the recorded body is a description",
    "va.update.status": "the recorded body is cut",
    "svc.create.badName": _BY_CHANCE,
    "svc.update.clusterIPEmptied": _BY_CHANCE,
    "svc.update.ipFamilies": _BY_CHANCE,
    "svc.ok.update.putWithoutIP": _BY_CHANCE,
    "svc.ok.update.backToClusterIP": "an answer cut to a field that is not there",
    "pvc.ok.update.volumeName": "an answer cut to a field that is not there",
    "ns.terminating.create": _EMPTIED,
    "ns.ok.deleteAgain": _EMPTIED,
    "namespace.05.createInside": _EMPTIED,
    "namespace.06.updateInside": _EMPTIED,
    "namespace.07.finalize.stillWorks": _EMPTIED,
    "namespace.08.finalize.last": _EMPTIED,
    "namespace.10.contentRemains": _EMPTIED,
    "sa.token.badExpiration": _NO_TOKENS,
    "sa.token.tooLong": _NO_TOKENS,
    "sa.token.noSA": _NO_TOKENS,
    "sa.token.badRef": _NO_TOKENS,
    "sa.token.badRefKind": _NO_TOKENS,
    "token.01.create": _NO_TOKENS,
    "token.02.defaults": _NO_TOKENS,
}


@pytest.mark.parametrize("name", ["defaults", "invalid", "patch"])
def test_each_recorded_line_is_answered_as_recorded(name: str) -> None:
    wrong: dict[str, list[str]] = {}

    with live_server(storage="memory:", furniture=True) as server:
        prepare(server)
        for row in recorded(name):
            answer = send(server, row)
            if row["id"].partition(".")[0] not in _WORKLOADS and row["id"] not in _EXCEPTIONS:
                found = differences(row, answer)
                if found:
                    wrong[row["id"]] = found

    assert not wrong
