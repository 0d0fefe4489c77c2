"""What people do to objects with kubectl, old and new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import WIDGETS
from tests.e2e.make import widget
from tests.support.kubectl import Kubectl

WIDGET = f"widgets.{WIDGETS}"


def needs(kubectl: Kubectl, minor: int) -> None:
    if kubectl.version < (1, minor):
        pytest.skip(f"kubectl {kubectl.version} cannot do this; 1.{minor} can")


def red(name: str = "one", **spec: Any) -> dict[str, Any]:
    return widget(WIDGETS, name, **spec)


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply", "-f", "-", given=red(size=1, ports=[{"name": "a"}]))
    assert "unchanged" in kubectl("apply", "-f", "-", given=red(size=1, ports=[{"name": "a"}]))
    assert "configured" in kubectl("apply", "-f", "-", given=red(color="green"))
    spec = kubectl.json("get", WIDGET, "one")["spec"]
    assert spec == {"color": "green", "replicas": 1}


def test_apply_of_several_objects_and_prune_of_a_field(kubectl: Kubectl) -> None:
    out = kubectl("apply", "-f", "-", given=[red("one"), red("two")])
    assert out.count("created") == 2
    assert kubectl("get", WIDGET, "-o", "name").split() == [
        f"widget.{WIDGETS}/one",
        f"widget.{WIDGETS}/two",
    ]


def test_server_side_apply_conflicts_and_forces(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", given=red(size=1))
    kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", given=red())
    refused = kubectl.fails(
        "apply", "--server-side", "--field-manager=other", "-f", "-", given=red(size=2)
    )
    assert "conflict" in refused
    assert ".spec.size" in refused
    kubectl(
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=other",
        "-f",
        "-",
        given=red(size=2),
    )
    assert kubectl.json("get", WIDGET, "one")["spec"]["size"] == 2


def test_client_side_apply_moves_on_to_server_side(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=red(size=1))
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", given=red(size=1))


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client", "server"])
def test_diff_tells_what_an_apply_would_change(kubectl: Kubectl, how: tuple[str, ...]) -> None:
    kubectl("apply", *how, "-f", "-", given=red())
    assert kubectl.run("diff", *how, "-f", "-", given=red()).code == 0
    ran = kubectl.run("diff", *how, "-f", "-", given=red(color="blue"))
    assert ran.code == 1, ran.text
    assert "-  color: red" in ran.out
    assert "+  color: blue" in ran.out
    assert kubectl.json("get", WIDGET, "one")["spec"]["color"] == "red"
    kubectl("delete", WIDGET, "one")


def test_edit_writes_what_the_editor_leaves(kubectl: Kubectl, files: Path) -> None:
    kubectl("create", "-f", "-", given=red(size=1))
    editor = files / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/size: 1/size: 42/' \"$1\"\n")
    editor.chmod(0o755)
    ran = kubectl.run("edit", WIDGET, "one", env={"KUBE_EDITOR": str(editor)})
    assert ran.code == 0, ran.text
    assert kubectl.json("get", WIDGET, "one")["spec"]["size"] == 42


def test_edit_that_breaks_the_schema_is_refused(kubectl: Kubectl, files: Path) -> None:
    kubectl("create", "-f", "-", given=red(size=1))
    editor = files / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/color: red/color: pink/' \"$1\"\n")
    editor.chmod(0o755)
    ran = kubectl.run("edit", WIDGET, "one", env={"KUBE_EDITOR": str(editor)})
    assert ran.code != 0
    assert kubectl.json("get", WIDGET, "one")["spec"]["color"] == "red"


def test_scale_through_the_subresource(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=red())
    assert "scaled" in kubectl("scale", WIDGET, "one", "--replicas=5")
    assert kubectl.json("get", WIDGET, "one")["spec"]["replicas"] == 5
    refused = kubectl.fails("scale", WIDGET, "one", "--replicas=6", "--current-replicas=4")
    assert "xpected replicas to be 4, was 5" in refused


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=red())
    kubectl("label", WIDGET, "one", "tier=front")
    assert "already has a value" in kubectl.fails("label", WIDGET, "one", "tier=back")
    kubectl("label", WIDGET, "one", "tier=back", "--overwrite")
    kubectl("annotate", WIDGET, "one", "note=hello")
    metadata = kubectl.json("get", WIDGET, "one")["metadata"]
    assert metadata["labels"] == {"tier": "back"}
    assert metadata["annotations"]["note"] == "hello"
    kubectl("label", WIDGET, "one", "tier-")
    assert "labels" not in kubectl.json("get", WIDGET, "one")["metadata"]


def test_patches_of_a_custom_resource(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=red(size=1))
    kubectl("patch", WIDGET, "one", "--type=merge", "-p", '{"spec":{"size":2}}')
    replace = [
        {"op": "test", "path": "/spec/size", "value": 2},
        {"op": "replace", "path": "/spec/size", "value": 3},
    ]
    kubectl("patch", WIDGET, "one", "--type=json", "-p", json.dumps(replace))
    assert kubectl.json("get", WIDGET, "one")["spec"]["size"] == 3
    refused = kubectl.fails("patch", WIDGET, "one", "--type=strategic", "-p", '{"spec":{"size":4}}')
    assert "application/json-patch+json, application/merge-patch+json" in refused


def test_a_strategic_patch_of_a_configmap(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "cm", "--from-literal=a=b")
    kubectl("patch", "configmap", "cm", "-p", '{"data":{"c":"d"}}')
    assert kubectl.json("get", "configmap", "cm")["data"] == {"a": "b", "c": "d"}


def test_replace(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=red(size=1))
    kubectl("replace", "-f", "-", given=red(color="blue"))
    assert kubectl.json("get", WIDGET, "one")["spec"] == {"color": "blue", "replicas": 1}
    assert "NotFound" in kubectl.fails("replace", "-f", "-", given=red("two"))


def test_every_form_of_output(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=red(size=7))
    assert kubectl("get", WIDGET).split()[:3] == ["NAME", "COLOR", "AGE"]
    wide = kubectl("get", WIDGET, "-o", "wide").split()
    assert wide[:4] == ["NAME", "COLOR", "SIZE", "AGE"]
    assert wide[4:7] == ["one", "red", "7"]
    assert yaml.safe_load(kubectl("get", WIDGET, "one", "-o", "yaml"))["spec"]["size"] == 7
    assert kubectl.json("get", WIDGET)["items"][0]["spec"]["size"] == 7
    assert kubectl("get", WIDGET, "-o", "jsonpath={.items[*].spec.size}") == "7"
    columns = "custom-columns=N:.metadata.name,S:.spec.size"
    assert kubectl("get", WIDGET, "-o", columns).split() == ["N", "S", "one", "7"]
    assert kubectl("get", WIDGET, "-o", "name") == f"widget.{WIDGETS}/one\n"
    assert kubectl("get", "all").split()[:3] == ["NAME", "COLOR", "AGE"]
    assert "Color:     red" in kubectl("describe", WIDGET, "one")


def test_managed_fields_on_request(kubectl: Kubectl) -> None:
    needs(kubectl, 21)
    kubectl("create", "-f", "-", given=red())
    assert "managedFields" not in kubectl("get", WIDGET, "one", "-o", "yaml")
    shown = yaml.safe_load(kubectl("get", WIDGET, "one", "-o", "yaml", "--show-managed-fields"))
    (entry,) = shown["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl-create", "Update")


def test_selectors(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=[red("one"), red("two", color="blue")])
    kubectl("label", WIDGET, "one", "app=x")
    by_label = kubectl("get", WIDGET, "-l", "app in (x,y)", "-o", "name")
    assert by_label == f"widget.{WIDGETS}/one\n"
    by_field = kubectl("get", WIDGET, "--field-selector=spec.color=blue", "-o", "name")
    assert by_field == f"widget.{WIDGETS}/two\n"
    by_name = kubectl("get", WIDGET, "--field-selector=metadata.name!=two", "-o", "name")
    assert by_name == f"widget.{WIDGETS}/one\n"
    refused = kubectl.fails("get", WIDGET, "--field-selector=spec.size=1")
    assert "field label not supported: spec.size" in refused


def test_lists_in_chunks_are_whole(kubectl: Kubectl) -> None:
    names = [f"w{number}" for number in range(7)]
    kubectl("create", "-f", "-", given=[red(name) for name in names])
    listed = kubectl("get", WIDGET, "--chunk-size=2", "-o", "name").split()
    assert listed == [f"widget.{WIDGETS}/{name}" for name in names]


def test_a_watch_follows_changes(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=red())
    watch = kubectl.start("get", WIDGET, "-w", "-o", "custom-columns=N:.metadata.name,S:.spec.size")
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline().split() == ["N", "S"]
        assert watch.stdout.readline().split() == ["one", "<none>"]
        kubectl("patch", WIDGET, "one", "--type=merge", "-p", '{"spec":{"size":3}}')
        assert watch.stdout.readline().split() == ["one", "3"]
        kubectl("create", "-f", "-", given=red("two", size=4))
        assert watch.stdout.readline().split() == ["two", "4"]
        kubectl("delete", WIDGET, "one")
        assert watch.stdout.readline().split() == ["one", "3"]
    finally:
        watch.kill()
        watch.communicate()


def test_wait_for_a_condition_a_field_and_a_deletion(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=red())
    status = {"status": {"phase": "Up", "conditions": [{"type": "Ready", "status": "True"}]}}
    path = f"/apis/{WIDGETS}/v1/namespaces/{kubectl.namespace}/widgets/one/status"
    merge = "application/merge-patch+json"
    assert kubectl.server.request("PATCH", path, status, content_type=merge).status == 200
    kubectl("wait", "--for=condition=Ready", f"{WIDGET}/one", "--timeout=5s")
    if kubectl.version >= (1, 23):
        kubectl("wait", "--for=jsonpath={.status.phase}=Up", f"{WIDGET}/one", "--timeout=5s")
    waiting = kubectl.start("wait", "--for=delete", f"{WIDGET}/one", "--timeout=20s")
    kubectl("delete", WIDGET, "one", "--wait=false")
    waiting.communicate(timeout=30)
    if kubectl.version >= (1, 23):
        assert waiting.returncode == 0


def test_status_subresource(kubectl: Kubectl) -> None:
    needs(kubectl, 24)
    kubectl("create", "-f", "-", given=red())
    patch = ("--type=merge", "-p", '{"status":{"phase":"Up"},"spec":{"size":9}}')
    kubectl("patch", WIDGET, "one", "--subresource=status", *patch)
    shown = kubectl.json("get", WIDGET, "one", "--subresource=status")
    assert shown["status"] == {"phase": "Up"}
    assert "size" not in shown["spec"]


def test_delete_by_name_selector_and_all(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=[red(name) for name in ("a", "b", "c", "d")])
    kubectl("label", WIDGET, "b", "app=x")
    kubectl("delete", WIDGET, "a")
    kubectl("delete", WIDGET, "-l", "app=x")
    assert kubectl("get", WIDGET, "-o", "jsonpath={.items[*].metadata.name}") == "c d"
    kubectl("delete", WIDGET, "--all")
    assert "NotFound" in kubectl.fails("delete", WIDGET, "a")
    assert kubectl("delete", WIDGET, "a", "--ignore-not-found") == ""


def test_a_finalizer_holds_a_deleted_object(kubectl: Kubectl) -> None:
    held = red()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kubectl("create", "-f", "-", given=held)
    assert "timed out" in kubectl.fails("delete", WIDGET, "one", "--timeout=1s")
    assert kubectl.json("get", WIDGET, "one")["metadata"]["deletionTimestamp"]
    kubectl("patch", WIDGET, "one", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "NotFound" in kubectl.fails("get", WIDGET, "one")


def test_create_refuses_what_the_schema_does_not_know(kubectl: Kubectl) -> None:
    unknown = kubectl.fails("create", "-f", "-", given=red(size="three", shape="round"))
    if kubectl.version < (1, 25):
        assert 'unknown field "shape" in com.example.e2e.v1.Widget.spec' in unknown
        assert 'got "string", expected "integer"' in unknown
    else:
        assert 'strict decoding error: unknown field "spec.shape"' in unknown
    invalid = kubectl.fails("create", "-f", "-", "--validate=false", given=red(size="three"))
    assert "spec.size: Invalid value" in invalid
    missing = kubectl.fails("create", "-f", "-", given={**red(), "spec": {}})
    assert "color" in missing


def test_dry_runs_store_nothing(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", "--dry-run=client", given=red())
    shown = yaml.safe_load(
        kubectl("create", "-f", "-", "--dry-run=server", "-o", "yaml", given=red())
    )
    assert shown["spec"] == {"color": "red", "replicas": 1}
    assert kubectl("get", WIDGET, "-o", "name") == ""


def test_last_applied_configuration(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=red(size=1))
    shown = yaml.safe_load(kubectl("apply", "view-last-applied", WIDGET, "one"))
    assert shown["spec"] == {"color": "red", "size": 1}
    kubectl("apply", "set-last-applied", "-f", "-", given=red(size=2))
    shown = yaml.safe_load(kubectl("apply", "view-last-applied", WIDGET, "one"))
    assert shown["spec"]["size"] == 2
