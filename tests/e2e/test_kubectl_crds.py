"""The life of a CRD in the hands of kubectl."""

from __future__ import annotations

import copy

from tests.e2e.make import version, widget, widget_crd
from tests.support.kubectl import Kubectl

ESTABLISHED = ("wait", "--for=condition=Established", "--timeout=5s")


def test_apply_wait_use(kubectl: Kubectl, group: str) -> None:
    assert "created" in kubectl("apply", "-f", "-", given=widget_crd(group))
    kubectl(*ESTABLISHED, f"crd/widgets.{group}")
    assert "unchanged" in kubectl("apply", "-f", "-", given=widget_crd(group))
    kubectl("apply", "-f", "-", given=widget(group, "one"))
    row = kubectl("get", "crd", f"widgets.{group}").splitlines()[1].split()
    assert row[0] == f"widgets.{group}"
    assert row[1].endswith("Z")


def test_server_side_apply_of_a_crd(kubectl: Kubectl, group: str) -> None:
    kubectl("apply", "--server-side", "-f", "-", given=widget_crd(group))
    kubectl(*ESTABLISHED, f"crd/widgets.{group}")
    more = widget_crd(group, version("v1"), version("v2", storage=False))
    kubectl("apply", "--server-side", "-f", "-", given=more)
    shown = kubectl.json("get", "crd", f"widgets.{group}")
    assert [item["name"] for item in shown["spec"]["versions"]] == ["v1", "v2"]


def test_the_default_version_is_the_one_of_highest_priority(kubectl: Kubectl, group: str) -> None:
    crd = widget_crd(group, version("v1beta1"), version("v1", storage=False))
    kubectl("create", "-f", "-", given=crd)
    kubectl(*ESTABLISHED, f"crd/widgets.{group}")
    kubectl("create", "-f", "-", given=widget(group, "one", at="v1beta1"))
    assert kubectl.json("get", f"widgets.{group}", "one")["apiVersion"] == f"{group}/v1"
    older = kubectl.json("get", f"widgets.v1beta1.{group}", "one")
    assert older["apiVersion"] == f"{group}/v1beta1"


def test_a_deprecated_version_warns(kubectl: Kubectl, group: str) -> None:
    old = version("v1beta1", storage=False, deprecated=True)
    kubectl("create", "-f", "-", given=widget_crd(group, version("v1"), old))
    kubectl(*ESTABLISHED, f"crd/widgets.{group}")
    ran = kubectl.run("get", f"widgets.v1beta1.{group}")
    assert f"Warning: {group}/v1beta1 Widget is deprecated; use {group}/v1 Widget" in ran.err


def test_a_crd_takes_its_objects_with_it(kubectl: Kubectl, group: str) -> None:
    kubectl("create", "-f", "-", given=widget_crd(group))
    kubectl(*ESTABLISHED, f"crd/widgets.{group}")
    kubectl("create", "-f", "-", given=[widget(group, "one"), widget(group, "two")])
    kubectl("delete", "crd", f"widgets.{group}", "--timeout=20s")
    assert "NotFound" in kubectl.fails("get", "crd", f"widgets.{group}")
    kubectl("create", "-f", "-", given=widget_crd(group))
    kubectl(*ESTABLISHED, f"crd/widgets.{group}")
    assert kubectl("get", f"widgets.{group}", "-o", "name") == ""


def test_a_deleted_crd_waits_for_the_finalizers_of_its_objects(
    kubectl: Kubectl, group: str
) -> None:
    kubectl("create", "-f", "-", given=widget_crd(group))
    kubectl(*ESTABLISHED, f"crd/widgets.{group}")
    held = copy.deepcopy(widget(group, "one"))
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kubectl("create", "-f", "-", given=held)
    kubectl("delete", "crd", f"widgets.{group}", "--wait=false")
    kubectl("wait", "--for=condition=Terminating", f"crd/widgets.{group}", "--timeout=5s")
    assert kubectl.json("get", f"widgets.{group}", "one")["metadata"]["deletionTimestamp"]
    refused = kubectl.fails("create", "-f", "-", given=widget(group, "two"))
    assert "create not allowed while custom resource definition is terminating" in refused
    release = '{"metadata":{"finalizers":null}}'
    kubectl("patch", f"widgets.{group}", "one", "--type=merge", "-p", release)
    ran = kubectl.run("wait", "--for=delete", f"crd/widgets.{group}", "--timeout=20s")
    assert ran.code == 0 or "no matching resources" in ran.err or "NotFound" in ran.err
    assert "NotFound" in kubectl.fails("get", "crd", f"widgets.{group}")


def test_an_invalid_crd_is_refused_with_every_reason(kubectl: Kubectl, group: str) -> None:
    crd = widget_crd(group, version("v1"), version("v1"))
    crd["metadata"]["name"] = f"gadgets.{group}"
    refused = kubectl.fails("create", "--validate=false", "-f", "-", given=crd)
    assert 'must be spec.names.plural+"."+spec.group' in refused
    assert "must contain unique version names" in refused
    assert "must have exactly one version marked as storage version" in refused


def test_v1beta1_crds(kubectl: Kubectl, group: str) -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"crontabs.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "scope": "Namespaced",
            "names": {"plural": "crontabs", "kind": "CronTab"},
        },
    }
    assert "created" in kubectl("apply", "-f", "-", given=crd)
    kubectl(*ESTABLISHED, f"crd/crontabs.{group}")
    assert "unchanged" in kubectl("apply", "-f", "-", given=crd)
    beta = kubectl.json("get", "customresourcedefinitions.v1beta1.apiextensions.k8s.io")
    found = {item["metadata"]["name"]: item for item in beta["items"]}[f"crontabs.{group}"]
    assert found["spec"]["version"] == "v1"
    current = kubectl.json("get", "customresourcedefinitions", f"crontabs.{group}")
    assert current["apiVersion"] == "apiextensions.k8s.io/v1"
    assert current["spec"]["preserveUnknownFields"] is True
