"""``--feature-gates`` as kube-apiserver reads it: known gates pass, others end the start."""

from __future__ import annotations

import pytest

from instar.cli.serving.kube_apiserver import main
from instar.tools.envtest.feature_gates import GATES, BadFeatureGate, check_feature_gates


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
        (
            "CustomResourceFieldSelectors=false",
            "cannot set feature gate CustomResourceFieldSelectors to false, "
            "feature is locked to true",
        ),
    ],
)
def test_a_gate_that_cannot_be_set_is_refused_in_upstreams_words(value: str, told: str) -> None:
    with pytest.raises(BadFeatureGate) as caught:
        check_feature_gates([value])

    assert str(caught.value) == told


def test_known_gates_are_accepted() -> None:
    check_feature_gates(["AllAlpha=true, AllBeta=F", "CustomResourceFieldSelectors=1", ""])

    assert {"WatchList", "AllAlpha", "InPlacePodVerticalScaling"} <= GATES


def test_kube_apiserver_exits_with_1_for_an_unknown_gate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--etcd-servers=http://127.0.0.1:1", "--feature-gates=NoSuchGate=true"])

    assert code == 1
    assert capsys.readouterr().err == (
        '"command failed" err="unrecognized feature gate: NoSuchGate"\n'
    )
