"""Defaults of a pod spec, in Pods and in pod templates. The functions change the spec in place.

Called by the strategies in ``pods.py``, ``jobs.py``, ``sets.py`` and ``kinds/storage.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from instar.base.json_values import Object
from instar.kube.quantities import round_up_to_milli, sum_quantities
from instar.kube.schema.growth import Growth

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_FILE_MODE = 0o644
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_IMAGE = re.compile(
    r"[A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
"""Roughly valid image references; for others no pull policy default by tag is possible."""
_A_CONTAINER, _A_VOLUME, _A_PORT = 400, 60, 20
"""Approximate maximum of JSON bytes that defaults add to a container, a volume and a port."""
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def default_pod_spec(spec: Object) -> None:
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    if "resources" in spec:
        round_resources(spec["resources"])
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    growth = Growth()
    for volume in spec.get("volumes") or ():
        growth.take(_A_VOLUME)
        default_volume(volume)
    for container in containers_of(spec):
        growth.take(_A_CONTAINER + len(container.get("ports") or ()) * _A_PORT)
        _default_container(container)


def containers_of(spec: Object) -> Iterator[Object]:
    for name in _CONTAINER_LISTS:
        yield from spec.get(name) or ()


def default_pod_only(spec: Object) -> None:
    """Apply defaults that a Pod gets and a template does not."""
    spec.setdefault("enableServiceLinks", True)
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        _requests_from_limits(container["resources"])
        if spec.get("hostNetwork"):
            for port in container.get("ports") or ():
                port.setdefault("hostPort", port.get("containerPort", 0))
    if spec.get("resources"):
        _default_pod_requests(spec)


def _default_pod_requests(spec: Object) -> None:
    """Default pod-level requests from its containers, then from its limits."""
    limits = spec["resources"].get("limits")
    if not limits:
        return
    requests = dict(spec["resources"].get("requests") or {})
    asked: dict[str, list[str]] = {}
    for container in spec.get("containers") or ():
        for name, quantity in (container["resources"].get("requests") or {}).items():
            asked.setdefault(name, []).append(quantity)
    for name, quantities in asked.items():
        requests.setdefault(name, sum_quantities(quantities))
    spec["resources"]["requests"] = dict(sorted({**limits, **requests}.items()))


def round_resources(resources: Object) -> None:
    """Round quantities up to thousandths."""
    for name in ("limits", "requests"):
        for resource, quantity in (resources.get(name) or {}).items():
            if quantity.endswith(("n", "u")):
                resources[name][resource] = round_up_to_milli(quantity)


def _requests_from_limits(resources: Object) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}
        resources["requests"] = dict(sorted(resources["requests"].items()))


def _default_container(container: Object) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    round_resources(container["resources"])
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for name in _PROBES:
        if name in container:
            _default_probe(container[name])
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        _default_http(lifecycle.get(name) or {})
    for variable in container.get("env") or ():
        _default_references(variable.get("valueFrom") or {})


def pull_policy(image: str) -> str:
    """Return ``Always`` for the tag ``latest``, explicit or implied."""
    if _IMAGE.fullmatch(image) is None:
        return "IfNotPresent"
    name = image.partition("@")[0]
    tag = name.rpartition("/")[2].partition(":")[2]
    is_latest = tag == "latest" or (not tag and "@" not in image)
    return "Always" if is_latest else "IfNotPresent"


def _default_probe(probe: Object) -> None:
    for name, value in _PROBE.items():
        if not probe.get(name):
            probe[name] = value
    _default_http(probe)
    if "grpc" in probe:
        probe["grpc"]["service"] = probe["grpc"].get("service") or ""


def _default_http(handler: Object) -> None:
    http = handler.get("httpGet")
    if http is not None:
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")


def _default_references(source: Object) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if "resourceFieldRef" in source:
        source["resourceFieldRef"].setdefault("divisor", "0")


def _default_items(items: Iterable[Object]) -> None:
    for item in items:
        _default_references(item)


def default_volume(volume: Object) -> None:
    """Default a volume of a pod, or the source of a PersistentVolume."""
    if not any(name != "name" for name in volume):
        volume["emptyDir"] = {}
    for name in ("secret", "configMap"):
        if name in volume:
            volume[name].setdefault("defaultMode", _FILE_MODE)
    if "downwardAPI" in volume:
        volume["downwardAPI"].setdefault("defaultMode", _FILE_MODE)
        _default_items(volume["downwardAPI"].get("items") or ())
    if "projected" in volume:
        _default_projected(volume["projected"])
    if "image" in volume and not volume["image"].get("pullPolicy"):
        volume["image"]["pullPolicy"] = pull_policy(volume["image"].get("reference") or "")
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template["spec"].setdefault("volumeMode", "Filesystem")
    default_volume_source(volume)


def _default_projected(projected: Object) -> None:
    projected.setdefault("defaultMode", _FILE_MODE)
    for source in projected.get("sources") or ():
        source.pop("clusterTrustBundle", None)  # its feature gate is off by default
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        if "downwardAPI" in source:
            _default_items(source["downwardAPI"].get("items") or ())


_SOURCES: dict[str, dict[str, Any]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def default_volume_source(volume: Object) -> None:
    for name, defaults in _SOURCES.items():
        if name in volume:
            for member, value in defaults.items():
                volume[name].setdefault(member, value)
