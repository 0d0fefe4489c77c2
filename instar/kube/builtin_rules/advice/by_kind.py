"""The warnings about an object of each built-in kind that has any.

``BuiltinStrategy.advise`` of ``server/registry/kinds`` calls ``advice``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from instar.base.field_errors import go_quote
from instar.base.json_values import Object, same_json
from instar.kube.api.string_rules import dns1123_label
from instar.kube.builtin_rules.advice.networks import (
    endpoints_advice,
    ingress_advice,
    policy_advice,
    service_advice,
    slice_advice,
)
from instar.kube.builtin_rules.advice.pod_specs import pod_advice
from instar.kube.builtin_rules.advice.values import network_advice, selected_label_advice
from instar.kube.builtin_rules.advice.volumes import (
    capacity_advice,
    claim_advice,
    claim_spec_advice,
    class_advice,
    volume_advice,
)

Advise = Callable[[Object, Object | None], list[str]]
"""(object, the object before it, None for a new one) → warnings."""
_MANY_COMPLETIONS, _MANY_AT_ONCE = 100_000, 10_000
_UNTRACKED = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
    "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)
_TOKENS_IN_THE_OPEN = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to "
    "prevent possible logging of tokens in volume attributes"
)
_SURPRISING = "which can result in surprising behavior; a DNS label is recommended:"


def advice(kind: str, new: Object, old: Object | None) -> list[str]:
    """Return the warnings about a valid object."""
    advise = _BY_KIND.get(kind)
    return [] if advise is None else advise(new, old)


def name_advice(obj: Object, used: str = "Pod names and hostnames") -> list[str]:
    """Return a warning about a name that is no DNS label, where pods are named after it."""
    reasons = dns1123_label(obj["metadata"].get("name", ""))
    if not reasons:
        return []
    return [f"metadata.name: this is used in {used}, {_SURPRISING} [{' '.join(reasons)}]"]


def _changed(new: Object, old: Object | None) -> bool:
    """Return whether the write counts as a new generation, which alone is judged again."""
    if old is None:
        return True
    return bool(new["metadata"].get("generation") != old["metadata"].get("generation"))


def _pod(new: Object, old: Object | None) -> list[str]:
    if old is not None:
        return []
    return [*name_advice(new, "the Pod's hostname"), *pod_advice(new)]


def _named_template(new: Object, old: Object | None) -> list[str]:
    return [*(name_advice(new) if old is None else ()), *_template(new, old)]


def _template(new: Object, old: Object | None) -> list[str]:
    if not _changed(new, old):
        return []
    return pod_advice(new["spec"].get("template") or {}, "spec.template")


def _bare_template(new: Object, old: Object | None) -> list[str]:
    return pod_advice(new.get("template") or {}, "template") if _changed(new, old) else []


def _daemon_set(new: Object, old: Object | None) -> list[str]:
    if old is not None and same_json(new["spec"].get("template"), old["spec"].get("template")):
        return []
    return pod_advice(new["spec"].get("template") or {}, "spec.template")


def _stateful_set(new: Object, old: Object | None) -> list[str]:
    spec, found = new["spec"], _template(new, old)
    for position, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        place = f"spec.volumeClaimTemplates[{position}]{'' if old is None else '.Spec'}"
        found += claim_spec_advice(claim.get("spec") or {}, place)
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        found.append(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
            "a value >= 0 is recommended"
        )
    return found


def _job(new: Object, old: Object | None) -> list[str]:
    found = name_advice(new) if old is None else []
    return found + (_job_spec(new["spec"], "spec") if _changed(new, old) else [])


def _cron_job(new: Object, old: Object | None) -> list[str]:
    found = name_advice(new) if old is None else []
    spec = new["spec"]
    if _changed(new, old):
        job = (spec.get("jobTemplate") or {}).get("spec") or {}
        found += _job_spec(job, "spec.jobTemplate.spec")
    if old is not None and "TZ" in spec.get("schedule", ""):
        found.append(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )
    return found


def _job_spec(spec: Object, path: str) -> list[str]:
    found = []
    many = (spec.get("completions") or 0) > _MANY_COMPLETIONS
    wide = (spec.get("parallelism") or 0) > _MANY_AT_ONCE
    if spec.get("completionMode") == "Indexed" and many and wide:
        found.append(f"{path}: {_UNTRACKED}")
    return found + pod_advice(spec.get("template") or {}, f"{path}.template")


def _node(new: Object, old: Object | None) -> list[str]:
    spec, found = new.get("spec") or {}, list[str]()
    if spec.get("configSource") is not None:
        found.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    for position, text in enumerate(spec.get("podCIDRs") or ()):
        found += network_advice(text, f"spec.podCIDRs[{position}]")
    return found


def _runtime_class(new: Object, old: Object | None) -> list[str]:
    selector = (new.get("scheduling") or {}).get("nodeSelector")
    return selected_label_advice(selector, "scheduling.nodeSelector", "{path}")


def _resource_slice(new: Object, old: Object | None) -> list[str]:
    driver = new["spec"].get("driver", "")
    if driver == driver.lower():
        return []
    text = "contains uppercase characters"
    return [f"spec.driver: driver names should be lowercase; {go_quote(driver)} {text}"]


def _csi_driver(new: Object, old: Object | None) -> list[str]:
    tokens = new["spec"].get("tokenRequests")
    former = None if old is None else old["spec"].get("tokenRequests")
    unset = new["spec"].get("serviceAccountTokenInSecrets") is None
    return [_TOKENS_IN_THE_OPEN] if tokens and unset and not same_json(tokens, former) else []


def _whatever_was(advise: Callable[[Object], list[str]]) -> Advise:
    """Return a function that does not ask what the object was before."""
    return lambda new, old: advise(new)


_BY_KIND: Mapping[str, Advise] = {
    "CSIDriver": _csi_driver,
    "CSIStorageCapacity": _whatever_was(capacity_advice),
    "CronJob": _cron_job,
    "DaemonSet": _daemon_set,
    "Deployment": _named_template,
    "EndpointSlice": lambda new, old: slice_advice(new, created=old is None),
    "Endpoints": _whatever_was(endpoints_advice),
    "Ingress": lambda new, old: ingress_advice(new) if old is None else [],
    "Job": _job,
    "NetworkPolicy": _whatever_was(policy_advice),
    "Node": _node,
    "PersistentVolume": _whatever_was(volume_advice),
    "PersistentVolumeClaim": _whatever_was(claim_advice),
    "Pod": _pod,
    "PodTemplate": _bare_template,
    "ReplicaSet": _named_template,
    "ReplicationController": _named_template,
    "ResourceSlice": _resource_slice,
    "RuntimeClass": _runtime_class,
    "Service": _whatever_was(service_advice),
    "StatefulSet": _stateful_set,
    "StorageClass": _whatever_was(class_advice),
}
