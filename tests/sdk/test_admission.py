"""Admission in Python: handlers, the patches they make, where they run."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object, copy_json
from instar.cli.commands import check, webhook
from instar.kube.api.admission_review import ParsedAdmissionRequest
from instar.kube.patches.difference import patch_between
from instar.kube.patches.json_patch import json_patch
from instar.sdk import Admission, Refused
from instar.server.registry.admission.webhooks.in_process import LocalConfiguration
from instar.tools.sdk.admission import path_of
from instar.tools.sdk.admission_reviews import (
    AdmissionReviewHandler,
    answer_review,
    review_in_process,
)
from instar.tools.sdk.errors import ConverterDefinitionError
from tests.admission.conftest import widget_crd
from tests.rest.support import Collection
from tests.support.server import live_server

admission = Admission("ref.io")


@admission.mutate("widgets", versions=["v1"])
def fill_size(widget: Object) -> None:
    widget.setdefault("spec", {}).setdefault("n", 3)


@admission.validate("widgets", versions=["v1"], operations=["CREATE", "UPDATE", "DELETE"])
def keep_locked(widget: Object, old: Object | None, request: Object, warn: Any) -> None:
    if widget.get("spec", {}).get("a") == "locked" and request["operation"] == "DELETE":
        raise Refused("it is locked")
    if old is not None and request["operation"] == "UPDATE":
        warn("changed")


def request(obj: Object | None, operation: str = "CREATE", old: Object | None = None) -> Object:
    return {"uid": "u1", "operation": operation, "object": obj, "oldObject": old}


def answer(name: str, asked: Object) -> Object:
    handler = admission.handler(f"{name}.widgets.ref.io")
    assert handler is not None
    response: Object = json.loads(answer_review(handler, ParsedAdmissionRequest("v1", asked)))[
        "response"
    ]
    return response


def test_a_mutators_change_becomes_a_patch_and_its_input_is_unchanged() -> None:
    obj = {"spec": {"a": "x"}}
    response = answer("fill-size", request(obj))

    assert obj == {"spec": {"a": "x"}}
    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"


def test_a_mutator_that_changes_nothing_sends_no_patch() -> None:
    assert "patch" not in answer("fill-size", request({"spec": {"n": 1}}))


def test_a_refusal_is_reported_with_its_code() -> None:
    response = answer("keep-locked", request(None, "DELETE", {"spec": {"a": "locked"}}))

    assert response["allowed"] is False
    assert response["status"] == {"message": "it is locked", "code": 403, "reason": "Forbidden"}


def test_a_handler_gets_what_it_names() -> None:
    response = answer("keep-locked", request({"spec": {}}, "UPDATE", {"spec": {}}))

    assert response["warnings"] == ["changed"]


def test_a_handler_that_wants_something_unknown_is_refused_when_it_is_written() -> None:
    def handler(widget: Object, user: str) -> None:
        """Nobody gives it a user."""

    with pytest.raises(ConverterDefinitionError, match="wants user"):
        Admission("ref.io").validate("widgets")(handler)


def test_two_handlers_of_one_name_are_refused() -> None:
    twice = Admission("ref.io")
    twice.validate("widgets")(fill_size)

    with pytest.raises(ConverterDefinitionError, match="two handlers"):
        twice.mutate("widgets")(fill_size)


@dataclass
class Spec:
    a: str = ""
    n: int | None = None


@dataclass
class Widget:
    spec: Spec = field(default_factory=Spec)


def test_a_model_may_stand_for_the_dict() -> None:
    typed = Admission("ref.io")

    @typed.mutate("widgets", model=Widget)
    def double(widget: Widget) -> Widget:
        return Widget(Spec(widget.spec.a, (widget.spec.n or 0) * 2))

    obj = {"apiVersion": "ref.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
    made = typed.handlers[0].run(request({**obj, "spec": {"a": "x", "n": 4}}))
    misfit = typed.handlers[0].run(request({**obj, "other": 1}))

    assert made.obj == {**obj, "spec": {"a": "x", "n": 8}}
    assert misfit.refusal is not None
    assert misfit.refusal.code == 422


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab/~", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a/~", max_size=2), inner),
    max_leaves=12,
)


OBJECTS = st.dictionaries(st.text("a/~", max_size=2), JSON)


@given(OBJECTS, OBJECTS)
def test_a_patch_between_two_objects_leads_from_one_to_the_other(before: Any, after: Any) -> None:
    assert json_patch(copy_json(before), patch_between(before, after)) == after


def test_a_handler_that_fails_is_a_failure_not_a_verdict() -> None:
    broken = Admission("ref.io")

    @broken.validate("widgets")
    def crash(widget: Object) -> None:
        raise KeyError("spec")

    handler = AdmissionReviewHandler([broken])
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
    body = json.dumps({**review, "request": request({})}).encode()

    with pytest.raises(Exception, match=r"crash.widgets.ref.io: KeyError: 'spec'"):
        handler.answer(path_of("crash.widgets.ref.io"), body)


# Where they run -----------------------------------------------------------------------------------


def test_a_server_runs_them_in_its_own_process() -> None:
    review = review_in_process(admission)
    documents = admission.configurations(lambda path: {})
    local = tuple(LocalConfiguration(each, review) for each in documents)
    with live_server(admissions=local) as server:
        server.create_crd(widget_crd())
        widgets = Collection(server, "ref.io", "widgets", "Widget")
        made = widgets.create("w", spec={"a": "locked"})
        at_two = widgets.at(version="v2").create("w2", spec={})
        changed = widgets.patch("w", {"spec": {"n": 5}})
        refused = widgets.delete("w")

    assert made["spec"]["n"] == 3
    assert at_two["spec"]["n"] == 3
    assert changed.warnings == ['299 - "changed"']
    assert (refused.status, refused.json["message"]) == (
        403,
        'admission webhook "keep-locked.widgets.ref.io" denied the request: it is locked',
    )


def test_manifests_have_configurations(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    webhook.add_arguments(parser)
    words = ["tests.sdk.test_admission:admission", "--manifests", "--name", "hook"]
    webhook.run(parser.parse_args(words))

    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    by_kind = {each["kind"]: each for each in documents}
    mutating = by_kind["MutatingWebhookConfiguration"]
    (one,) = mutating["webhooks"]
    assert one["name"] == "fill-size.widgets.ref.io"
    assert one["clientConfig"]["service"] == {
        "namespace": "default",
        "name": "hook",
        "path": "/admission/fill-size.widgets.ref.io",
        "port": 443,
    }
    assert mutating["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "default/hook"}
    (rule,) = by_kind["ValidatingWebhookConfiguration"]["webhooks"][0]["rules"]
    assert rule["operations"] == ["CREATE", "UPDATE", "DELETE"]


# Laws ---------------------------------------------------------------------------------------------

counting = Admission("ref.io")


@counting.mutate("widgets")
def count(widget: Object) -> None:
    spec = widget.setdefault("spec", {})
    spec["n"] = min((spec.get("n") or 0) + 1, 2**63 - 1)


renaming = Admission("ref.io")


@renaming.mutate("widgets")
def rename(widget: Object) -> None:
    widget["metadata"]["name"] = "other"


breaking = Admission("ref.io")


@breaking.mutate("widgets")
def spoil(widget: Object) -> None:
    if "a" in widget.get("spec", {}):
        widget["spec"]["n"] = "text"


shortsighted = Admission("ref.io")


@shortsighted.validate("widgets", versions=["v2"], matchPolicy="Exact")
def only_two(widget: Object) -> None:
    if widget.get("spec", {}).get("only2"):
        raise Refused("only2 is not for you")


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("admission", None),
        ("counting", "idempotent"),
        ("renaming", "immutable"),
        ("breaking", "valid"),
        ("shortsighted", "verdict"),
    ],
)
def test_laws_find_planted_mistakes_and_nothing_else(
    name: str, law: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "crd.yaml"
    file.write_text(json.dumps(widget_crd()))
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    words = ["--crd", str(file), "--admission", f"tests.sdk.test_admission:{name}"]
    words += ["--examples", "60", "--seed", "7", "-o", "json"]
    code = check.run(parser.parse_args(words))

    report = json.loads(capsys.readouterr().out)
    broken = {each["law"] for each in report["checks"] if each["verdict"] == "broken"}
    assert code == (0 if law is None else 1), report
    assert broken == (set() if law is None else {law})
