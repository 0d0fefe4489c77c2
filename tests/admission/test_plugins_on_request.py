"""Plugins of kube-apiserver that are off by default: each does its work when it is enabled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.server.lifecycle.admission_config import read_plugin_configurations
from instar.server.registry.admission.plugin_names import HERE
from instar.server.registry.admission.plugins.pod_tolerations import covers, merged_tolerations
from tests.support.server import Answer, LiveServer, live_server

PODS = "/api/v1/namespaces/{}/pods"
SERVICES = "/api/v1/namespaces/default/services"
NEW = frozenset(
    {
        *("NamespaceAutoProvision", "NamespaceExists", "AlwaysPullImages", "PodNodeSelector"),
        *("PodTolerationRestriction", "ExtendedResourceToleration", "DenyServiceExternalIPs"),
        "LimitPodHardAntiAffinityTopology",
    }
)
TOLERATIONS: Object = {
    "apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1",
    "kind": "Configuration",
    "default": [{"key": "team", "operator": "Exists"}],
}
POD_SECURITY: Object = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": "PodSecurityConfiguration",
    "defaults": {"enforce": "baseline"},
    "exemptions": {"namespaces": ["exempt"]},
}
SELECTORS: Object = {
    "podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "zone=a", "strict": "disk=ssd"}
}


def write(folder: Path, **configurations: Any) -> Path:
    plugins = [{"name": name, "configuration": each} for name, each in configurations.items()]
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    path = folder / "admission.yaml"
    path.write_text(json.dumps({**head, "plugins": plugins}))
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    path = write(
        tmp_path_factory.mktemp("admission"),
        PodTolerationRestriction=TOLERATIONS,
        PodSecurity=POD_SECURITY,
        PodNodeSelector=SELECTORS,
    )
    with live_server(
        storage="memory:", admission_plugins=HERE | NEW, admission_config=path
    ) as found:
        yield found


def namespace(server: LiveServer, name: str, **annotations: str) -> None:
    prefix = "scheduler.alpha.kubernetes.io/"
    given = {f"{prefix}{key.replace('_', '-')}": value for key, value in annotations.items()}
    body = {"metadata": {"name": name, "annotations": given}}
    assert server.request("POST", "/api/v1/namespaces", body).status == 201


def pod(server: LiveServer, name: str, place: str = "default", **spec: Any) -> Answer:
    containers = [{"name": "c", "image": "i:1", "imagePullPolicy": "IfNotPresent"}]
    body = {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}
    return server.request("POST", PODS.format(place), body)


def refusal(answer: Answer) -> str:
    assert answer.status == 403, answer.json
    return str(answer.json["message"])


def test_a_missing_namespace_is_created_with_its_first_object(server: LiveServer) -> None:
    path = "/api/v1/namespaces/provided/configmaps"
    dry = server.request("POST", f"{path}?dryRun=All", {"metadata": {"name": "c"}})
    before = server.request("GET", "/api/v1/namespaces/provided")
    made = server.request("POST", path, {"metadata": {"name": "c"}})
    after = server.request("GET", "/api/v1/namespaces/provided")

    assert (dry.status, before.status) == (404, 404)
    assert (made.status, after.json["status"]["phase"]) == (201, "Active")


def test_writes_to_a_missing_namespace_are_refused() -> None:
    on = (HERE | {"NamespaceExists"}) - {"NamespaceLifecycle"}
    with live_server(storage="memory:", admission_plugins=on) as server:
        path = "/api/v1/namespaces/nowhere/configmaps"
        answer = server.request("POST", path, {"metadata": {"name": "c"}})

    assert answer.status == 404
    assert answer.json["message"] == 'namespaces "nowhere" not found'


def test_every_image_is_pulled(server: LiveServer) -> None:
    images: dict[str, Any] = {
        "initContainers": [{"name": "i", "image": "i:2", "imagePullPolicy": "Never"}],
        "volumes": [{"name": "v", "image": {"reference": "r", "pullPolicy": "Never"}}],
    }
    spec = pod(server, "pulled", **images).json["spec"]

    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert spec["initContainers"][0]["imagePullPolicy"] == "Always"
    assert spec["volumes"][0]["image"]["pullPolicy"] == "Always"


def test_pods_get_the_node_selector_of_their_namespace_or_cluster(server: LiveServer) -> None:
    namespace(server, "labelled", node_selector="zone=b, disk=ssd")

    default = pod(server, "selected").json["spec"]["nodeSelector"]
    own = pod(server, "selected", "labelled", nodeSelector={"x": "y"}).json["spec"]["nodeSelector"]
    other = pod(server, "conflict", "labelled", nodeSelector={"zone": "a"})

    assert default == {"zone": "a"}
    assert own == {"zone": "b", "disk": "ssd", "x": "y"}
    assert refusal(other) == (
        'pods "conflict" is forbidden: pod node label selector conflicts with its namespace node '
        "label selector"
    )


def test_pods_have_only_labels_that_the_configuration_lists(server: LiveServer) -> None:
    namespace(server, "strict", node_selector="disk=ssd")

    allowed = pod(server, "allowed", "strict")
    refused = pod(server, "refused", "strict", nodeSelector={"zone": "a"})

    assert allowed.status == 201
    assert "labels conflict with its namespace whitelist" in refusal(refused)


@pytest.mark.parametrize("text", ["a", "a=b=c"])
def test_a_node_selector_that_cannot_be_read_is_refused(server: LiveServer, text: str) -> None:
    namespace(server, f"bad-{len(text)}", node_selector=text)

    assert f"invalid selector: [{text}]" in refusal(pod(server, "p", f"bad-{len(text)}"))


def test_pods_get_default_tolerations_and_memory_pressure(server: LiveServer) -> None:
    namespace(server, "tolerant", defaultTolerations='[{"key":"gpu","operator":"Exists"}]')
    request = {"resources": {"requests": {"cpu": "1"}}, "name": "c", "image": "i"}

    default = pod(server, "default-tolerations").json["spec"]["tolerations"]
    own = pod(server, "own", "tolerant", containers=[request]).json["spec"]["tolerations"]

    assert {"key": "team", "operator": "Exists"} in default
    keys = {each["key"] for each in own}
    assert {"gpu", "node.kubernetes.io/memory-pressure"} <= keys
    assert "team" not in keys


def test_tolerations_outside_of_the_list_of_a_namespace_are_refused(server: LiveServer) -> None:
    namespace(server, "narrow", tolerationsWhitelist='[{"key":"only","operator":"Exists"}]')
    namespace(server, "broken", tolerationsWhitelist="[")

    answer = pod(server, "p", "narrow")
    unread = pod(server, "p", "broken")

    assert "conflict with its namespace whitelist" in refusal(answer)
    assert "annotation scheduler.alpha.kubernetes.io/tolerationsWhitelist" in refusal(unread)


def test_a_toleration_covers_what_it_tolerates_besides() -> None:
    anything: Object = {"operator": "Exists"}
    brief: Object = {"key": "a", "operator": "Exists", "effect": "NoExecute"}
    limited = {**brief, "tolerationSeconds": 10}

    assert covers(anything, limited)
    assert covers(brief, limited)
    assert not covers(limited, brief)
    assert covers({"key": "a", "value": "1"}, {"key": "a", "operator": "Equal", "value": "1"})
    assert not covers({"key": "a", "value": "1"}, {"key": "a", "operator": "Equal", "value": "2"})
    assert merged_tolerations([limited, brief, brief]) == [brief]
    assert merged_tolerations([limited, anything]) == [anything]


def test_pods_tolerate_the_taint_of_their_extended_resources(server: LiveServer) -> None:
    amounts = {"example.com/gpu": "1"}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}

    made = pod(server, "extended", containers=[container]).json["spec"]["tolerations"]

    assert {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in made
    assert "cpu" not in {each.get("key") for each in made}


def test_services_get_no_new_external_addresses(server: LiveServer) -> None:
    ports = [{"port": 80}]
    given = {"metadata": {"name": "s"}, "spec": {"ports": ports, "externalIPs": ["8.8.8.8"]}}

    answer = server.request("POST", SERVICES, given)
    without = server.request("POST", SERVICES, {**given, "spec": {"ports": ports}})

    assert refusal(answer) == (
        'services "s" is forbidden: Use of external IPs is denied by admission control'
    )
    assert without.status == 201


def test_required_anti_affinity_is_among_hosts_only(server: LiveServer) -> None:
    def apart(key: str) -> Object:
        term = {"topologyKey": key, "labelSelector": {}}
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    zones = pod(server, "zones", affinity=apart("topology.kubernetes.io/zone"))
    hosts = pod(server, "hosts", affinity=apart("kubernetes.io/hostname"))

    assert refusal(zones).endswith(
        "has TopologyKey topology.kubernetes.io/zone but only key kubernetes.io/hostname is allowed"
    )
    assert hosts.status == 201


def test_pod_security_has_defaults_and_exemptions_of_its_configuration(server: LiveServer) -> None:
    namespace(server, "exempt")

    assert "violates PodSecurity" in refusal(pod(server, "host", hostNetwork=True))
    assert pod(server, "host", "exempt", hostNetwork=True).status == 201


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("PodSecurity", {**POD_SECURITY, "defaults": {"enforce": "nothing"}}),
        ("PodTolerationRestriction", {**TOLERATIONS, "default": [{"key": 1}]}),
        ("PodTolerationRestriction", {**TOLERATIONS, "more": 1}),
        ("PodTolerationRestriction", {"kind": "Configuration"}),
        ("PodNodeSelector", {"podNodeSelectorPluginConfig": {"n": "a=b=c"}}),
        ("PodNodeSelector", {"podNodeSelectorPluginConfig": []}),
    ],
)
def test_a_configuration_that_cannot_be_read_is_reported_in_a_line(
    tmp_path: Path, name: str, document: Object
) -> None:
    path = write(tmp_path, **{name: document})

    with pytest.raises(ValueError, match=f"{name}: .*"):
        read_plugin_configurations(path, HERE | NEW)
    read_plugin_configurations(path, frozenset())
