"""Objects of built-in kinds as Go reads them: what a server has shown reads back as itself."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from instar.kube.typed.reading import TypedError, read_object
from tests.support.builtins import needs_builtins, recorded

_FILLED = {
    "<microtime>": "2024-01-01T00:00:00.000000Z",
    "<time>": "2024-01-01T00:00:00Z",
    '"<nodePort>"': "30000",
}


def _is_object(row: dict[str, Any]) -> bool:
    answer = row.get("answer")
    if not isinstance(answer, dict) or "items" in answer:
        return False
    return answer.get("kind") not in (None, "Status", "CustomResourceDefinition")


@needs_builtins
@pytest.mark.parametrize("row", recorded("defaults", _is_object))
def test_an_object_shown_by_a_server_reads_back_unchanged(row: dict[str, Any]) -> None:
    text = json.dumps(row["answer"])
    for placeholder, value in _FILLED.items():
        text = text.replace(placeholder, value)
    shown = json.loads(text)
    read = copy.deepcopy(shown)

    unknown = read_object(read, shown["apiVersion"], shown["kind"])

    assert unknown == []
    assert read == shown


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("x", "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec"),
        (
            {"containers": [{"ports": [{"containerPort": "80"}]}]},
            "json: cannot unmarshal string into Go struct field "
            "ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            {"containers": [{"resources": {"limits": {"cpu": "1x"}}}]},
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ({"nodeName": 1}, "json: cannot unmarshal number into Go struct field "
         "PodSpec.spec.nodeName of type string"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_reported_in_gos_words(spec: Any, sentence: str) -> None:
    with pytest.raises(TypedError) as refused:
        read_object({"spec": spec}, "v1", "Pod")
    assert str(refused.value) == sentence


def test_unknown_fields_are_reported_by_path_and_null_is_ignored() -> None:
    pod = {"spec": {"containers": [{"name": "a", "imagee": 1}], "nope": 1, "nodeName": None}}

    unknown = read_object(pod, "v1", "Pod")

    assert unknown == ["spec.containers[0].imagee", "spec.nope"]
    assert "nodeName" not in pod["spec"]


def test_quantities_are_kept_in_one_form_and_bytes_without_line_breaks() -> None:
    claim: dict[str, Any] = {"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}
    secret: dict[str, Any] = {"data": {"a": "YW\nJj"}}

    read_object(claim, "v1", "PersistentVolumeClaim")
    read_object(secret, "v1", "Secret")

    assert claim["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    assert secret["data"] == {"a": "YWJj"}


def test_a_null_among_others_is_the_zero_of_their_type() -> None:
    quota: dict[str, Any] = {"spec": {"hard": {"pods": None}, "scopes": [None]}}
    pod: dict[str, Any] = {
        "spec": {
            "containers": [None],
            "nodeSelector": {"a": None},
            "securityContext": {"supplementalGroups": [None]},
        }
    }

    assert read_object(quota, "v1", "ResourceQuota") == []
    assert read_object(pod, "v1", "Pod") == []

    assert quota["spec"] == {"hard": {"pods": "0"}, "scopes": [""]}
    assert pod["spec"]["containers"] == [{"name": "", "resources": {}}]
    assert pod["spec"]["nodeSelector"] == {"a": ""}
    assert pod["spec"]["securityContext"] == {"supplementalGroups": [0]}
