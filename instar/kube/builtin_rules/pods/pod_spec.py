"""Validates a whole pod spec, of a Pod or of any pod template.

Called by ``server/registry/kinds/workloads`` and the rules of controllers and jobs.
"""

from __future__ import annotations

from instar.base.field_errors import (
    FieldError,
    child,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.builtin_rules.addresses import address_errors
from instar.kube.builtin_rules.basics import (
    MOST_INT32,
    annotation_errors,
    choice_errors,
    dns_label_errors,
    label_map_errors,
    label_name_errors,
    name_errors,
)
from instar.kube.builtin_rules.pods.containers import (
    container_errors,
    ephemeral_container_errors,
    init_container_errors,
    padded_image_errors,
)
from instar.kube.builtin_rules.pods.scheduling import (
    affinity_errors,
    gate_errors,
    spread_errors,
    toleration_errors,
)
from instar.kube.builtin_rules.pods.security import pod_security_errors
from instar.kube.builtin_rules.pods.volumes import volume_errors

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_DEADLINE = f"must be between 1 and {MOST_INT32}, inclusive"


def pod_spec_errors(spec: Object, path: str) -> list[FieldError]:
    """Check a spec in upstream's order; an absent field costs one lookup."""
    found: list[FieldError] = []
    volumes: frozenset[str] = frozenset()
    if spec.get("volumes"):
        found, volumes = volume_errors(spec["volumes"], child(path, "volumes"))
    containers = spec.get("containers") or []
    found += container_errors(containers, volumes, child(path, "containers"))
    if spec.get("initContainers"):
        names = [one.get("name", "") for one in containers]
        where = child(path, "initContainers")
        found += init_container_errors(spec["initContainers"], names, volumes, where)
    if spec.get("ephemeralContainers"):
        where = child(path, "ephemeralContainers")
        late = spec["ephemeralContainers"]
        found += ephemeral_container_errors(late, spec, volumes, where)
    found += _host_network_errors(spec, path)
    found += choice_errors(spec.get("restartPolicy", ""), child(path, "restartPolicy"), _RESTARTS)
    found += choice_errors(spec.get("dnsPolicy", ""), child(path, "dnsPolicy"), _DNS)
    if spec.get("nodeSelector"):
        found += label_map_errors(spec["nodeSelector"], child(path, "nodeSelector"))
    context = spec.get("securityContext") or {}
    if context or spec.get("shareProcessNamespace"):
        found += pod_security_errors(context, spec, child(path, "securityContext"))
    if spec.get("affinity") is not None:
        found += affinity_errors(spec["affinity"], child(path, "affinity"))
    if spec.get("dnsConfig") or spec.get("dnsPolicy") == "None":
        found += _dns_config_errors(spec, path)
    for position, gate in enumerate(spec.get("readinessGates") or ()):
        where = f"{path}.readinessGates[{position}].conditionType"
        found += label_name_errors(gate.get("conditionType", ""), where)
    if spec.get("schedulingGates"):
        found += gate_errors(spec["schedulingGates"], child(path, "schedulingGates"))
    if spec.get("topologySpreadConstraints"):
        where = child(path, "topologySpreadConstraints")
        found += spread_errors(spec["topologySpreadConstraints"], where)
    return found + _own_errors(spec, path)


def _own_errors(spec: Object, path: str) -> list[FieldError]:
    """Check the scalar fields, which upstream checks last."""
    found: list[FieldError] = []
    for name, check in (
        ("serviceAccountName", name_errors),
        ("nodeName", name_errors),
    ):
        if spec.get(name):
            found += check(spec[name], child(path, name))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MOST_INT32:
        found.append(invalid(child(path, "activeDeadlineSeconds"), deadline, _DEADLINE))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            found += dns_label_errors(spec[name], child(path, name))
    if spec.get("tolerations"):
        found += toleration_errors(spec["tolerations"], child(path, "tolerations"))
    if spec.get("hostAliases"):
        found += _alias_errors(spec["hostAliases"], child(path, "hostAliases"))
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name):
            found += name_errors(spec[name], child(path, name))
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        choices = ("Never", "PreemptLowerPriority")
        found += choice_errors(policy, child(path, "preemptionPolicy"), choices)
    return found


def _host_network_errors(spec: Object, path: str) -> list[FieldError]:
    if not spec.get("hostNetwork"):
        return []
    found: list[FieldError] = []
    for list_name in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(list_name) or ()):
            for number, port in enumerate(container.get("ports") or ()):
                host = port.get("hostPort", 0)
                if host and host != port.get("containerPort"):
                    where = f"{path}.{list_name}[{position}].ports[{number}].hostPort"
                    text = "must match `containerPort` when `hostNetwork` is true"
                    found.append(invalid(where, host, text))
    return found


def _dns_config_errors(spec: Object, path: str) -> list[FieldError]:
    config = spec.get("dnsConfig") or {}
    where = child(child(path, "dnsConfig"), "nameservers")
    servers = config.get("nameservers") or []
    found = [
        error
        for position, server in enumerate(servers)
        for error in address_errors(server, index(where, position))
    ]
    if spec.get("dnsPolicy") == "None" and not servers:
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        found.insert(0, required(where, text))
    return found


def _alias_errors(aliases: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, alias in enumerate(aliases):
        where = index(path, position)
        found += address_errors(alias.get("ip", ""), child(where, "ip"))
        for host in alias.get("hostnames") or ():
            found += name_errors(host, child(where, "hostnames"))
    return found


def label_and_annotation_errors(metadata: Object, path: str) -> list[FieldError]:
    found = label_map_errors(metadata.get("labels") or {}, child(path, "labels"))
    return found + annotation_errors(metadata.get("annotations") or {}, child(path, "annotations"))


def template_errors(template: Object, path: str) -> list[FieldError]:
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    found = label_and_annotation_errors(metadata, path)
    found += pod_spec_errors(spec, child(path, "spec"))
    if spec.get("ephemeralContainers"):
        where = f"{path}.spec.ephemeralContainers"
        found.append(forbidden(where, "ephemeral containers not allowed in pod template"))
    return found


def lasting_template_errors(template: Object, path: str, owner: str) -> list[FieldError]:
    """Check the template of a controller that keeps pods running (restartPolicy Always)."""
    found = template_errors(template, path)
    spec = template.get("spec") or {}
    restart = spec.get("restartPolicy", "")
    if restart in _RESTARTS and restart != "Always":
        found.append(not_supported(f"{path}.spec.restartPolicy", restart, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {owner} is not Supported"
        found.append(forbidden(f"{path}.spec.activeDeadlineSeconds", text))
    return found


def pod_errors(spec: Object) -> list[FieldError]:
    """Check the rules that apply to a Pod but not to a template."""
    found = pod_spec_errors(spec, "spec")
    for name in ("containers", "initContainers"):
        found += padded_image_errors(spec.get(name) or [], child("spec", name))
    return found


def new_pod_errors(spec: Object) -> list[FieldError]:
    found = pod_errors(spec)
    if spec.get("ephemeralContainers"):
        found.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    return found


def status_address_errors(status: Object) -> list[FieldError]:
    """Check ``podIPs``; ``podIP`` alone counts as its first entry."""
    given = [one.get("ip", "") for one in status.get("podIPs") or ()]
    if not given and status.get("podIP"):
        given = [status["podIP"]]
    return [
        error
        for position, address in enumerate(given)
        for error in address_errors(address, index("status.podIPs", position))
    ]
