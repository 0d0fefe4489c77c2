"""``--feature-gates`` as kube-apiserver reads it: known gates pass, others end the start."""

from __future__ import annotations

from argparse import Namespace

import pytest

from instar.cli.serving.feature_gate_flags import gates_of, plugins_off
from instar.cli.serving.kube_apiserver import main
from instar.tools.envtest.feature_gates import GATES, BadFeatureGate, changed_gates
from tests.support.server import live_server


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("NoSuchGate=true", "unrecognized feature gate: NoSuchGate"),
        ("AllAlpha=true,NoSuchGate=false", "unrecognized feature gate: NoSuchGate"),
        ("AllAlpha", "missing bool value for AllAlpha"),
        (
            "X=maybe",
            'invalid value of X=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        ("wardle:a=true", "component not registered: wardle"),
        ("kube:Nope=true", "unrecognized feature gate: Nope"),
        (
            "CustomResourceFieldSelectors=false",
            "cannot set feature gate CustomResourceFieldSelectors to false, "
            "feature is locked to true",
        ),
    ],
)
def test_a_gate_that_cannot_be_set_is_refused_in_upstreams_words(value: str, told: str) -> None:
    with pytest.raises(BadFeatureGate) as caught:
        changed_gates([value])

    assert str(caught.value) == told


def test_known_gates_are_accepted() -> None:
    found = changed_gates(
        ["AllAlpha=true, AllBeta=F", "CustomResourceFieldSelectors=1", "", "kube:WatchList=0"]
    )

    assert found == {"AllAlpha": True, "WatchList": False}
    assert {"AtomicFIFO", "WatchListClient", "InPlacePodVerticalScaling"} <= GATES


def test_a_gate_without_effect_is_named_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    given = Namespace(feature_gates=["DRADeviceTaintRules=true,WatchList=false,OpenAPIEnums=true"])

    gates = gates_of(given)

    assert gates == {"DRADeviceTaintRules": True, "WatchList": False}
    assert caplog.messages == ["feature gate DRADeviceTaintRules=true has no effect in this server"]


def test_without_watch_list_initial_events_are_refused_in_upstreams_words() -> None:
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    with live_server(watch_list=False) as server:
        answer = server.request("GET", f"/api/v1/configmaps?{query}")

    assert answer.status == 422
    assert answer.json["message"] == (
        'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents '
        "is forbidden for watch unless the WatchList feature gate is enabled"
    )


def test_gates_of_admission_plugins_turn_them_off() -> None:
    assert plugins_off({"MutatingAdmissionPolicy": False}) == {"MutatingAdmissionPolicy"}
    assert plugins_off({}) == frozenset()


def test_kube_apiserver_exits_with_1_for_an_unknown_gate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--etcd-servers=http://127.0.0.1:1", "--feature-gates=NoSuchGate=true"])

    assert code == 1
    assert capsys.readouterr().err == (
        '"command failed" err="unrecognized feature gate: NoSuchGate"\n'
    )
