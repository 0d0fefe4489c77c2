"""Warnings about pods and pod templates.

Called by ``by_kind.py`` with the place of the template; a pod has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from instar.base.field_errors import go_quote
from instar.base.json_values import Object, same_json
from instar.kube.builtin_rules.advice.ports import port_advice
from instar.kube.builtin_rules.advice.values import (
    address_advice,
    expression_advice,
    fraction_advice,
    label_advice,
    selected_label_advice,
)
from instar.kube.builtin_rules.advice.volumes import overlap_advice, pod_volume_advice

_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_BYTES = ("memory", "ephemeral-storage")
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
Placed = Iterator[tuple[str, Object]]
"""Containers with their places."""


def pod_advice(pod: Object, place: str = "") -> list[str]:
    """Return the warnings about a pod, or about the template at ``place``."""
    head = f"{place}." if place else ""
    spec = pod.get("spec") or {}
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    volumes = spec.get("volumes") or ()
    containers = list(_containers(spec, f"{head}spec"))
    noted = f"{head}metadata.annotations"
    return [
        *_placement(spec, f"{head}spec"),
        *(f"{noted}[{name}]: {why}" for name, why in _ANNOTATIONS.items() if name in annotations),
        *pod_volume_advice(volumes, f"{head}spec.volumes"),
        *overlap_advice(volumes),
        *_repeated(spec.get("hostAliases"), "ip", f"{head}spec.hostAliases"),
        *_repeated(spec.get("imagePullSecrets"), "name", f"{head}spec.imagePullSecrets"),
        *_unnamed(spec.get("imagePullSecrets"), f"{head}spec.imagePullSecrets"),
        *fraction_advice(spec.get("overhead"), _BYTES, f"{head}spec.overhead"),
        *_seccomp(spec, annotations, _SECCOMP, noted),
        *(
            text
            for path, each in containers
            for text in _container(each, path, spec, annotations, noted)
        ),
        *port_advice(containers),
        *_grace(spec, f"{head}spec"),
        *_affinities(spec.get("affinity") or {}, f"{head}spec.affinity"),
        *_addresses(spec, f"{head}spec"),
    ]


def _containers(spec: Object, path: str) -> Placed:
    for member in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(member) or ()):
            yield f"{path}.{member}[{position}]", container


def _placement(spec: Object, path: str) -> Iterator[str]:
    """Yield warnings about where a pod may run."""
    yield from selected_label_advice(spec.get("nodeSelector"), f"{path}.nodeSelector")
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for position, term in enumerate(required):
        place = f"{path}.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{position}]"
        yield from expression_advice(term.get("matchExpressions"), f"{place}.matchExpressions")
    for position, term in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{path}.affinity.nodeAffinity.{_PREFERRED}[{position}].preference"
        expressions = (term.get("preference") or {}).get("matchExpressions")
        yield from expression_advice(expressions, f"{place}.matchExpressions", values=True)
    for position, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place = f"{path}.topologySpreadConstraints[{position}]"
        name = constraint.get("topologyKey", "")
        if why := label_advice(name):
            yield f"{place}.topologyKey: {name} is {why}"
        if constraint.get("labelSelector") is None:
            yield f"{place}.labelSelector: {_NO_SELECTOR}"


def _repeated(items: Iterable[Object] | None, name: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for position, item in enumerate(items or ()):
        value = item.get(name, "")
        if value in seen:
            yield f"{path}[{position}].{name}: duplicate {name} {go_quote(value)}"
        seen.add(value)


def _unnamed(secrets: Iterable[Object] | None, path: str) -> Iterator[str]:
    for position, secret in enumerate(secrets or ()):
        if not secret.get("name"):
            yield f'{path}[{position}].name: invalid empty name ""'


def _seccomp(holder: Object, annotations: Object, name: str, noted: str) -> Iterator[str]:
    """Yield a warning about a profile that only an annotation names."""
    context = holder.get("securityContext") or {}
    if name in annotations and context.get("seccompProfile") is None:
        yield f'{noted}[{name}]: non-functional in v1.27+; use the "seccompProfile" field instead'


def _container(
    container: Object, path: str, spec: Object, annotations: Object, noted: str
) -> Iterator[str]:
    name = container.get("name", "")
    yield from _seccomp(container, annotations, _CONTAINER_SECCOMP + name, noted)
    key = _APPARMOR + name
    if key in annotations and not _has_profile(container, spec, annotations[key]):
        yield f'{noted}[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    resources = container.get("resources") or {}
    for amount in _BYTES:
        for part in ("limits", "requests"):
            yield from fraction_advice(resources.get(part), (amount,), f"{path}.resources.{part}")
    yield from _variables(container.get("env") or (), f"{path}.env")


def _has_profile(container: Object, spec: Object, annotation: str) -> bool:
    if (container.get("securityContext") or {}).get("appArmorProfile") is not None:
        return True
    whole = (spec.get("securityContext") or {}).get("appArmorProfile")
    return whole is not None and same_json(whole, _profile_of(annotation))


def _profile_of(annotation: str) -> Any:
    """Return the profile that an annotation means."""
    kinds = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}
    if annotation in kinds:
        return {"type": kinds[annotation]}
    if annotation.startswith("localhost/"):
        name = annotation.removeprefix("localhost/")
        return {"type": "Localhost", "localhostProfile": name} if name else None
    return None


def _variables(variables: Iterable[Object], path: str) -> Iterator[str]:
    """Yield warnings about a variable that hides an earlier one without using it."""
    seen: set[str] = set()
    for position, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        hides = "valueFrom" in variable or value == reference or reference not in value
        if name in seen and hides:
            yield (
                f"{path}[{position}]: hides previous definition of {go_quote(name)}, which may be "
                "dropped when using apply"
            )
        seen.add(name)


def _grace(spec: Object, path: str) -> Iterator[str]:
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield (
            f"{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
            "will be treated as 1"
        )


def _affinities(affinity: Object, path: str) -> Iterator[str]:
    for member in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(member) or {}
        for position, term in enumerate(terms.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.{member}.{_REQUIRED}[{position}].labelSelector: {_NO_SELECTOR}"
        for position, weighted in enumerate(terms.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                place = f"{path}.{member}.{_PREFERRED}[{position}].podAffinityTerm"
                yield f"{place}.labelSelector: {_NO_SELECTOR}"


def _addresses(spec: Object, path: str) -> Iterator[str]:
    servers = (spec.get("dnsConfig") or {}).get("nameservers") or ()
    for position, address in enumerate(servers):
        yield from address_advice(address, f"{path}.dnsConfig.nameservers[{position}]")
    for position, alias in enumerate(spec.get("hostAliases") or ()):
        yield from address_advice(alias.get("ip", ""), f"{path}.hostAliases[{position}].ip")
