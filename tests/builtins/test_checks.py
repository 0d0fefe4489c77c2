"""Rules of workload kinds where the recordings are thin."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object, copy_json
from instar.kube.api.label_selector import selector_text
from instar.kube.builtin_rules.basics import config_key_errors, port_name, whole_percent_errors
from instar.kube.builtin_rules.cron import schedule_problem
from instar.kube.builtin_rules.go_internal_text import difference, internal
from instar.kube.builtin_rules.pods.compute_resources import quantity_value, requirement_errors
from instar.kube.builtin_rules.pods.containers import host_port_errors
from instar.kube.builtin_rules.pods.environment import ENV_FIELDS, field_ref_errors
from instar.kube.builtin_rules.pods.scheduling import toleration_errors
from instar.kube.builtin_rules.pods.update import change_errors, ephemeral_errors
from instar.kube.builtin_rules.pods.volumes import source_errors, volume_errors
from instar.kube.quantities import canonical_quantity, round_up_to_milli, sum_quantities
from instar.server.registry.kinds.autoscaling_versions import V1, V2, AutoscalerConverter
from instar.server.registry.kinds.workloads.podspec_defaults import pull_policy
from instar.server.registry.verbs.graceful_delete import Grace, begin

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def spec(**changes: object) -> Object:
    container = {"name": "a", "image": "x:1", "imagePullPolicy": "IfNotPresent", "resources": {}}
    container["terminationMessagePolicy"] = "File"
    base = {"containers": [container], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}
    return {**base, **changes}


@pytest.mark.parametrize(
    ("schedule", "trouble"),
    [
        ("*/5 0-3 1,15 jan-mar sun", ""),
        ("@every 1h30m", ""),
        ("@daily", ""),
        ("@never", "unrecognized descriptor: @never"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        (
            "x * * * *",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
        ),
    ],
)
def test_a_schedule_that_cannot_be_used_says_where(schedule: str, trouble: str) -> None:
    assert schedule_problem(schedule) == trouble


@given(st.text(max_size=40))
def test_any_text_is_judged_as_a_schedule(text: str) -> None:
    assert isinstance(schedule_problem(text), str)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("x", "Always"),
        ("x:latest", "Always"),
        ("x:1", "IfNotPresent"),
        ("host:5000/a/b", "Always"),
        ("host:5000/a/b:2", "IfNotPresent"),
        ("x@sha256:" + "0" * 64, "IfNotPresent"),
        ("", "IfNotPresent"),
        ("not an image", "IfNotPresent"),
    ],
)
def test_only_the_newest_image_is_always_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_grace_begins_with_the_first_deletion() -> None:
    metadata: Object = {"generation": 1}

    found = begin(metadata, None, 30, NOW)

    assert found is Grace.RUNNING
    assert metadata == {
        "generation": 2,
        "deletionTimestamp": "2024-01-01T00:00:30Z",
        "deletionGracePeriodSeconds": 30,
    }


@pytest.mark.parametrize(
    ("wanted", "found", "ends"),
    [
        (None, Grace.PENDING, "2024-01-01T00:00:30Z"),
        (40, Grace.PENDING, "2024-01-01T00:00:30Z"),
        (5, Grace.RUNNING, "2024-01-01T00:00:05Z"),
        (0, Grace.OVER, "2024-01-01T00:00:00Z"),
    ],
)
def test_a_second_deletion_only_shortens(wanted: int | None, found: Grace, ends: str) -> None:
    metadata: Object = {}
    begin(metadata, None, 30, NOW)

    again = begin(metadata, wanted, 30, NOW)

    assert again is found
    assert metadata["deletionTimestamp"] == ends


@pytest.mark.parametrize(
    ("volume", "field"),
    [
        ({"nfs": {"server": "s", "path": "rel"}}, "v.nfs.path"),
        ({"configMap": {"name": "c", "defaultMode": 512}}, "v.configMap.defaultMode"),
        ({"secret": {"secretName": "s", "items": [{"key": "k"}]}}, "v.secret.items[0].path"),
        ({"persistentVolumeClaim": {}}, "v.persistentVolumeClaim.claimName"),
        ({"csi": {}}, "v.csi.driver"),
        ({"emptyDir": {"sizeLimit": "-1"}}, "v.emptyDir.sizeLimit"),
        ({"downwardAPI": {"items": [{"path": "p"}]}}, "v.downwardAPI.items[0]"),
        ({"ephemeral": {}}, "v.ephemeral.volumeClaimTemplate"),
        ({}, "v"),
    ],
)
def test_a_volume_source_says_what_it_needs(volume: Object, field: str) -> None:
    assert [error.field for error in source_errors(volume, "v")] == [field]


def test_a_wrong_volume_cannot_be_mounted() -> None:
    found, names = volume_errors([{"name": "v", "secret": {}}, {"name": "w", "emptyDir": {}}], "v")

    assert [error.field for error in found] == ["v[0].secret.secretName"]
    assert names == {"w"}


def test_two_containers_cannot_have_one_port_of_the_node() -> None:
    port = {"containerPort": 1, "hostPort": 80, "protocol": "TCP"}

    found = host_port_errors([{"ports": [port]}, {"ports": [port]}], "c")

    assert str(found[0]) == 'c[1].ports[0].hostPort: Duplicate value: "TCP//80"'


def test_extended_resources_need_a_limit() -> None:
    found = requirement_errors({"requests": {"example.com/gpu": "1"}}, "r")

    assert [str(error) for error in found] == [
        "r.limits: Required value: Limit must be set for non overcommitable resources"
    ]


@pytest.mark.parametrize(
    ("field", "right"),
    [
        ("metadata.labels['a']", True),
        ("metadata.labels['a b']", False),
        ("spec.nodeName['a']", False),
        ("status.podIPs", True),
        ("metadata.labels", False),
    ],
)
def test_an_environment_variable_takes_some_fields(field: str, right: bool) -> None:
    found = field_ref_errors({"apiVersion": "v1", "fieldPath": field}, "f", ENV_FIELDS)

    assert (not found) is right


def test_tolerations_that_exist_stay() -> None:
    old = spec(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 1}])
    new = spec(tolerations=[{"key": "b", "operator": "Exists"}])

    assert [error.field for error in change_errors(new, old)] == ["spec.tolerations"]
    assert not toleration_errors(new["tolerations"], "t")


def test_a_deadline_only_comes_nearer() -> None:
    old = spec(activeDeadlineSeconds=10)

    assert not change_errors(spec(activeDeadlineSeconds=5), old)
    assert change_errors(spec(activeDeadlineSeconds=20), old)
    assert change_errors(spec(), old)


def test_the_node_selector_of_a_gated_pod_may_be_narrowed() -> None:
    gate = [{"name": "example.com/g"}]
    old = spec(schedulingGates=gate, nodeSelector={"a": "1"})

    assert not change_errors(spec(nodeSelector={"a": "1", "b": "2"}), old)
    assert change_errors(spec(nodeSelector={"b": "2"}), old)


def test_ephemeral_containers_are_only_added() -> None:
    container = {**spec()["containers"][0], "name": "dbg"}
    old = spec(ephemeralContainers=[container])

    assert [error.field for error in ephemeral_errors(spec(), old)] == ["spec.ephemeralContainers"]
    assert not ephemeral_errors(old, copy_json(old))


def test_a_value_is_shown_as_upstream_keeps_it() -> None:
    shown = internal("PodSpec", spec(hostNetwork=True))

    assert shown["SecurityContext"]["HostNetwork"] is True
    assert shown["Containers"][0]["Image"] == "x:1"
    assert shown["Volumes"] is None
    assert difference({"a": 1}, {"a": 2}) == '@@ -1,3 +1,3 @@\n {\n- "a": 1\n+ "a": 2\n }\n'


def test_a_selector_is_written_as_in_a_query() -> None:
    expressions = [
        {"key": "k", "operator": "NotIn", "values": ["y", "x"]},
        {"key": "b", "operator": "DoesNotExist"},
        {"key": "c", "operator": "Exists"},
    ]

    text = selector_text({"matchLabels": {"a": "1"}, "matchExpressions": expressions})

    assert text == "a=1,!b,c,k notin (x,y)"


@pytest.mark.parametrize("key", ["", ".", "..", "..a", "a b", "a" * 254])
def test_invalid_keys_of_a_config_map_are_refused(key: str) -> None:
    assert config_key_errors(key, "k")


def test_names_of_ports_and_percentages() -> None:
    assert port_name("a--b") == ["must not contain consecutive hyphens"]
    assert port_name("-a") == ["must not begin or end with a hyphen"]
    assert not whole_percent_errors("100%", "p")
    assert whole_percent_errors("101%", "p")


@given(st.integers(1, 10**6), st.sampled_from(("n", "u", "m", "", "k", "Ki", "Mi")))
def test_quantities_add_up(number: int, suffix: str) -> None:
    one = canonical_quantity(f"{number}{suffix}")

    assert quantity_value(sum_quantities([one, one])) == 2 * quantity_value(one)


def test_fine_quantities_are_rounded_up() -> None:
    assert round_up_to_milli("100u") == "1m"
    assert round_up_to_milli("1500001n") == "2m"


def test_fields_that_v1_lacks_survive_a_round_trip() -> None:
    status = {
        "desiredReplicas": 1,
        "currentReplicas": 2,
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1"}}}
        ],
        "conditions": [{"type": "AbleToScale", "status": "True"}],
    }
    target = {"type": "AverageValue", "averageValue": "10"}
    up = {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}
    original: Object = {
        "apiVersion": V2,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "annotations": {"mine": "stays"}},
        "spec": {
            "maxReplicas": 5,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 50},
                    },
                },
                {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": target}},
            ],
            "behavior": {"scaleUp": up},
        },
        "status": status,
    }
    converter = AutoscalerConverter()

    async def there_and_back() -> tuple[Object, Object]:
        [old] = await converter.convert([original], V1)
        [new] = await converter.convert([old], V2)
        return old, new

    old, new = asyncio.run(there_and_back())

    assert old["spec"] == {"maxReplicas": 5, "targetCPUUtilizationPercentage": 50}
    assert new == original


@given(st.text(max_size=50))
def test_an_annotation_may_say_anything(text: str) -> None:
    names = ("metrics", "behavior", "current-metrics", "conditions")
    annotations = {f"autoscaling.alpha.kubernetes.io/{name}": text for name in names}
    obj: Object = {"apiVersion": V1, "metadata": {"annotations": annotations}, "spec": {}}

    [converted] = asyncio.run(AutoscalerConverter().convert([obj], V2))

    assert "annotations" not in converted["metadata"]
