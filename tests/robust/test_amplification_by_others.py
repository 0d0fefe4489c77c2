"""What webhooks, policies, converters and encodings make of a small object is bounded, too: the
rows of docs/reference/limits.md that are not about schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base import limits
from instar.base.errors import RequestTooLarge
from instar.base.json_values import is_larger
from instar.kube.protobuf.envelope import decode_object, wrap_message
from instar.kube.protobuf.wire import BYTES, length_prefixed, tag
from tests.support import crds
from tests.support.admission import AdmissionHook, adding, configuration, configured, patching
from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook

MAPS = "/api/v1/namespaces/default/configmaps"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
LARGE = "x" * (limits.MAX_STORED // 4)


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        yield running


def test_a_webhook_cannot_make_an_object_larger_than_a_body(server: LiveServer) -> None:
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    with AdmissionHook() as hook:
        hook.says["/m"] = lambda request: patching(
            adding("/data", {"a": "x" * 300_000}),
            *({"op": "copy", "from": "/data/a", "path": f"/data/k{n}"} for n in range(30)),
        )
        grows = configuration("Mutating", hook.webhook("m.ref.io", "/m", rules=[rule]))
        with configured(server, grows):
            answer = server.request("POST", MAPS, {"metadata": {"name": "grown"}})

    assert answer.status in (413, 422, 500)
    assert answer.json["kind"] == "Status"
    assert server.request("GET", f"{MAPS}/grown").status == 404


def test_a_policy_cannot_either(server: LiveServer) -> None:
    twice = "object.data.a + object.data.a"
    mutation = {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": f"[JSONPatch{{op: 'add', path: '/data/a', value: {twice}}}]"},
    }
    rules = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "grow.ref.io"},
        "spec": {
            "matchConstraints": {"resourceRules": [rules]},
            "reinvocationPolicy": "Never",
            "mutations": [mutation] * 40,  # two to the fortieth times as large
        },
    }
    bound = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "grow.ref.io"},
        "spec": {"policyName": "grow.ref.io"},
    }
    group = "/apis/admissionregistration.k8s.io/v1"
    made = [
        server.request("POST", f"{group}/mutatingadmissionpolicies", policy),
        server.request("POST", f"{group}/mutatingadmissionpolicybindings", bound),
    ]
    assert [each.status for each in made] == [201, 201], made[0].text
    try:
        body = {"metadata": {"name": "doubled"}, "data": {"a": "x"}}
        answer = server.request("POST", MAPS, body)
    finally:
        server.request("DELETE", f"{group}/mutatingadmissionpolicybindings/grow.ref.io")
        server.request("DELETE", f"{group}/mutatingadmissionpolicies/grow.ref.io")

    assert 400 <= answer.status < 600
    assert answer.json["kind"] == "Status"
    assert server.request("GET", f"{MAPS}/doubled").status == 404


def test_objects_that_a_converter_makes_too_large_are_not_stored(server: LiveServer) -> None:
    def grow(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        return {**obj, "apiVersion": api_version, "spec": {f"k{n}": LARGE for n in range(5)}}

    with Webhook(convert=grow) as hook:
        crd = crds.crd(
            *(crds.version(version, crds.fields(spec=OPEN)) for version in ("v1", "v2")),
            group="grow.io",
            plural="hooks",
            kind="Hook",
            conversion=hook.conversion(),
        )
        server.create_crd(crd)
        storage = next(v["name"] for v in crd["spec"]["versions"] if v["storage"])
        other = "v2" if storage == "v1" else "v1"
        frame = {"apiVersion": f"grow.io/{other}", "kind": "Hook", "metadata": {"name": "a"}}
        path = f"/apis/grow.io/{other}/namespaces/default/hooks"
        answer = server.request("POST", path, frame)

        assert answer.status in (413, 500)
        assert server.request("GET", f"{path}/a").status == 404


@pytest.mark.parametrize(
    ("kind", "api_version", "field"),
    [
        ("ClusterRole", "rbac.authorization.k8s.io/v1", 2),
        ("ServiceAccount", "v1", 2),
        ("Endpoints", "v1", 2),
    ],
)
def test_empty_protobuf_messages_are_counted_by_what_they_become(
    kind: str, api_version: str, field: int
) -> None:
    """Two bytes each; three MiB of them would be a million and a half of objects."""
    empty = tag(field, BYTES) + length_prefixed(b"")
    few = wrap_message(api_version, kind, empty * 1000)
    many = wrap_message(api_version, kind, empty * 1_000_000)
    assert len(many) < limits.MAX_BODY

    assert decode_object(few)["kind"] == kind
    with pytest.raises(RequestTooLarge):
        decode_object(many)


def test_aliases_of_yaml_do_not_make_an_object_large(server: LiveServer) -> None:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for number in range(9):
        before, name = chr(97 + number), chr(98 + number)
        lines.append(f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]")
    answer = server.request("POST", MAPS, "\n".join(lines), content_type="application/yaml")

    assert answer.status == 400
    assert "document contains excessive aliasing" in answer.json["message"]


def test_a_patch_that_copies_is_counted_while_it_copies(server: LiveServer) -> None:
    body = {"metadata": {"name": "copied"}, "data": {"a": "x" * 10_000}}
    assert server.request("POST", MAPS, body).status == 201
    copies = [{"op": "copy", "from": "/data/a", "path": f"/data/k{n}"} for n in range(2_000)]

    answer = server.request(
        "PATCH", f"{MAPS}/copied", copies, content_type="application/json-patch+json"
    )

    assert answer.status in (413, 422)
    assert list(server.request("GET", f"{MAPS}/copied").json["data"]) == ["a"]


def test_the_table_names_tests_that_exist() -> None:
    """Each row of "What makes an object larger" has its test."""
    root = Path(__file__).parents[2]
    page = (root / "docs/reference/limits.md").read_text()
    table = page.partition("## What makes an object larger")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    sources = "".join(path.read_text() for path in (root / "tests").rglob("test_*.py"))
    for row in rows:
        named = [part for part in row.split("`") if part.startswith("test_")]
        assert named, f"this row names no test: {json.dumps(row)}"
        assert all(f"def {name}(" in sources for name in named), row


@given(
    st.recursive(
        st.none() | st.integers(-9, 9) | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=20,
    )
)
def test_the_size_of_a_value_is_computed_without_encoding_it(value: Any) -> None:
    written = len(json.dumps(value, ensure_ascii=False))

    assert not is_larger(value, 4 * written + 16)
    assert is_larger([value] * (written + 40), written)


def test_the_size_of_a_value_with_one_repeated_string_is_computed_at_once() -> None:
    value: Any = "x" * 1000
    for _ in range(60):
        value = [value] * 10  # ten to the sixtieth strings

    assert is_larger(value, limits.MAX_BODY)
