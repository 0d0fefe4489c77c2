"""What kubectl asks the server about: discovery, schemas, access; and the resources around CRs."""

from __future__ import annotations

from tests.e2e.conftest import WIDGETS
from tests.e2e.make import version, widget, widget_crd
from tests.support.kubectl import Kubectl

WIDGET = f"widgets.{WIDGETS}"


def test_api_resources_and_versions(kubectl: Kubectl) -> None:
    rows = [row.split() for row in kubectl("api-resources").splitlines()]
    assert ["widgets", "wd", f"{WIDGETS}/v1", "true", "Widget"] in rows
    assert ["namespaces", "ns", "v1", "false", "Namespace"] in rows
    names = kubectl("api-resources", f"--api-group={WIDGETS}", "-o", "name").split()
    assert names == [WIDGET]
    versions = kubectl("api-versions").split()
    assert {"v1", "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"} <= set(versions)
    assert f"{WIDGETS}/v1" in versions


def test_explain(kubectl: Kubectl) -> None:
    spec = kubectl("explain", "widgets.spec")
    assert "What is wanted." in spec
    assert "color\t<string> -required-" in spec
    assert "The colour." in spec
    assert "ports\t<[]Object>" in kubectl("explain", "widgets", "--recursive")
    assert "<map[string]string>" in kubectl("explain", "configmap.data")
    for at in ("v1", "v1beta1"):
        group = f"--api-version=apiextensions.k8s.io/{at}"
        assert "versions" in kubectl("explain", "customresourcedefinitions.spec", group)
    assert "does not exist" in kubectl.fails("explain", "widgets.spec.nothing")


def test_explain_shows_each_version(kubectl: Kubectl, group: str) -> None:
    other = version("v1beta1", storage=False, selectableFields=[])
    other["schema"] = {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"old": {"type": "string", "description": "An old field."}},
        }
    }
    kubectl("create", "-f", "-", given=widget_crd(group, version("v1"), other))
    kubectl("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=5s")
    old = kubectl("explain", "widgets", f"--api-version={group}/v1beta1")
    assert "An old field." in old
    new = kubectl("explain", "widgets", f"--api-version={group}/v1")
    assert "What is wanted." in new


def test_access_questions(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", WIDGET).strip() == "yes"
    assert kubectl("auth", "can-i", "*", "*").strip() == "yes"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    if kubectl.version >= (1, 28):
        assert "kubernetes-admin" in kubectl("auth", "whoami")


def test_generators_of_core_resources(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "cm", "--from-literal=a=b", "--from-literal=c=")
    kubectl("create", "secret", "generic", "s", "--from-literal=password=hidden")
    kubectl("create", "service", "clusterip", "web", "--tcp=80:8080")
    kubectl("create", "service", "externalname", "far", "--external-name=example.org")
    kubectl("create", "serviceaccount", "robot")
    assert kubectl.json("get", "configmap", "cm")["data"] == {"a": "b", "c": ""}
    secret = kubectl.json("get", "secret", "s")
    assert (secret["type"], secret["data"]) == ("Opaque", {"password": "aGlkZGVu"})
    service = kubectl.json("get", "service", "web")["spec"]
    assert service["selector"] == {"app": "web"}
    assert service["ports"] == [
        {"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080}
    ]
    assert kubectl.json("get", "service", "far")["spec"]["externalName"] == "example.org"
    rows = [row.split() for row in kubectl("get", "service,secret,configmap").splitlines()]
    [web] = [row for row in rows if row[:1] == ["service/web"]]
    assert (web[1], web[3:5]) == ("ClusterIP", ["<none>", "80/TCP"])
    assert web[2].startswith("10.0.0.")
    assert ["secret/s", "Opaque", "1"] in [r[:3] for r in rows]
    assert ["configmap/cm", "2"] in [r[:2] for r in rows]
    assert "password:  6 bytes" in kubectl("describe", "secret", "s")
    assert "Data" in kubectl("describe", "configmap", "cm")


def test_refusals_reach_typed_clients(kubectl: Kubectl) -> None:
    """They ask for protobuf first, so errors may come in it."""
    kubectl("create", "configmap", "cm")
    again = kubectl.fails("create", "configmap", "cm")
    assert 'configmaps "cm" already exists' in again
    assert "Invalid value" in kubectl.fails("create", "namespace", "Upper_Case")


def test_events(kubectl: Kubectl) -> None:
    about = {"kind": "Widget", "namespace": kubectl.namespace, "name": "one", "uid": "u1"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "one.1"},
        "involvedObject": {**about, "apiVersion": f"{WIDGETS}/v1"},
        "type": "Warning",
        "reason": "Broken",
        "message": "it broke",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    kubectl("create", "-f", "-", given=event)
    row = kubectl("get", "events").splitlines()[1].split()
    assert row[-5:] == ["Warning", "Broken", "widget/one", "it", "broke"]
    by_object = "--field-selector=involvedObject.kind=Widget,involvedObject.name=one,type=Warning"
    assert kubectl("get", "events", by_object, "-o", "name") == "event/one.1\n"
    other = "--field-selector=involvedObject.name=two"
    assert kubectl("get", "events", other, "-o", "name") == ""


def test_a_namespace_takes_its_objects_with_it(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace}-inner"
    kubectl("create", "namespace", name)
    kubectl("create", "-n", name, "-f", "-", given=widget(WIDGETS, "one"))
    kubectl("create", "-n", name, "configmap", "cm")
    kubectl("delete", "namespace", name, "--timeout=20s")
    assert "NotFound" in kubectl.fails("get", "namespace", name)
    assert name not in kubectl("get", WIDGET, "-A", "--no-headers")
    assert "not found" in kubectl.fails("create", "-n", name, "configmap", "cm")


def test_an_object_needs_its_namespace(kubectl: Kubectl) -> None:
    refused = kubectl.fails("create", "-n", "nowhere", "-f", "-", given=widget(WIDGETS, "one"))
    assert 'namespaces "nowhere" not found' in refused


def test_a_kind_that_is_not_served(kubectl: Kubectl) -> None:
    for kind in ("leasecandidates", "nosuch"):
        assert f'the server doesn\'t have a resource type "{kind}"' in kubectl.fails("get", kind)
