"""PodSecurity admission plugin: enforces, audits and warns by the labels of a namespace.

The admission chain calls it for pods, for kinds with a pod template (warnings and audit only) and
for namespaces, to validate their labels. The checks themselves are in ``kube/pod_security``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import field
from time import monotonic
from typing import Any

from instar.base import errors
from instar.base.config_shapes import ShapeMismatch, unknown_fields
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.pod_security.evaluation import violations
from instar.kube.pod_security.labels import (
    PREFIX,
    LevelVersion,
    PodSecurityLevel,
    PodSecurityPolicy,
    read_level,
    read_policy,
    read_version,
)
from instar.kube.pod_security.pod_view import PodView
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend

NAME = "PodSecurity"
_API = "pod-security.admission.config.k8s.io/v1"
_KIND = "PodSecurityConfiguration"
_MODES = ("enforce", "audit", "warn")
_SHAPE: Any = {
    "apiVersion": str,
    "kind": str,
    "defaults": {name: str for mode in _MODES for name in (mode, f"{mode}-version")},
    "exemptions": {"usernames": [str], "namespaces": [str], "runtimeClasses": [str]},
}
_PODS, _NAMESPACES = ("", "pods"), ("", "namespaces")
_TEMPLATES: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "podtemplates"): ("template",),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
    **dict.fromkeys(
        [
            *(("", "replicationcontrollers"), ("apps", "replicasets"), ("apps", "deployments")),
            *(("apps", "statefulsets"), ("apps", "daemonsets"), ("batch", "jobs")),
        ],
        ("spec", "template"),
    ),
}
_IGNORED = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"}
)
"""Pod subresources that cannot change the spec."""
_MOST_PODS = 3000
"""Pods that are checked when a namespace's level is raised."""
_MOST_SECONDS = 1.0
_PAUSE_AFTER = 20
"""Pods that are checked before the event loop gets its turn."""


class BadPodSecurity(ValueError):
    """One line that says what is wrong with the configuration."""


@dataclass(frozen=True)
class PodSecurityConfiguration:
    defaults: PodSecurityPolicy = PodSecurityPolicy()
    usernames: frozenset[str] = field(default_factory=frozenset)
    namespaces: frozenset[str] = field(default_factory=frozenset)
    runtime_classes: frozenset[str] = field(default_factory=frozenset)


def read_pod_security(document: Any) -> PodSecurityConfiguration:
    """Return the configuration of a ``PodSecurityConfiguration``; raises ``BadPodSecurity``."""
    try:
        unknown = unknown_fields(document, _SHAPE)
    except ShapeMismatch as error:
        raise BadPodSecurity(str(error)) from error
    if (document.get("apiVersion"), document.get("kind")) != (_API, _KIND):
        raise BadPodSecurity(f"expected {_API}, {_KIND}")
    if unknown:
        raise BadPodSecurity(f'strict decoding error: unknown field "{unknown[0]}"')
    defaults = document.get("defaults") or {}
    exempt = document.get("exemptions") or {}
    return PodSecurityConfiguration(
        PodSecurityPolicy(*(_default(defaults, mode) for mode in _MODES)),
        frozenset(exempt.get("usernames") or ()),
        frozenset(exempt.get("namespaces") or ()),
        frozenset(exempt.get("runtimeClasses") or ()),
    )


def _default(defaults: Mapping[str, str], mode: str) -> LevelVersion:
    try:
        level = read_level(defaults.get(mode) or "privileged")
        return LevelVersion(level, read_version(defaults.get(f"{mode}-version") or "latest"))
    except ValueError as error:
        raise BadPodSecurity(f"defaults.{mode}: {error}") from error


class PodSecurity:
    def __init__(
        self, backend: Backend, configuration: PodSecurityConfiguration | None = None
    ) -> None:
        self._configuration = configuration or PodSecurityConfiguration()
        self._namespaces = Lookup(backend, *_NAMESPACES)
        self._pods = Lookup(backend, *_PODS)

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        place = (serving.group, serving.plural)
        checked = place in (_PODS, _NAMESPACES) or place in _TEMPLATES
        return (
            PluginPhases.VALIDATE
            if checked and verb in (Verb.CREATE, Verb.UPDATE)
            else PluginPhases.NONE
        )

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        serving, obj = operation.target.serving, operation.obj
        place = (serving.group, serving.plural)
        if obj is None:
            return None
        if place == _NAMESPACES:
            return None if operation.subresource else self._validate_namespace(operation, obj)
        if place == _PODS:
            if operation.subresource not in _IGNORED:
                self._validate_pod(operation, obj)
        elif not operation.subresource:
            self._validate_template(operation, obj, _TEMPLATES[place])
        return None

    # --- namespaces ----------------------------------------------------------------------------

    def _validate_namespace(self, operation: Operation, obj: Object) -> Awaitable[None] | None:
        labels = _labels(obj)
        new, wrong = self._policy(labels)
        if operation.verb is Verb.CREATE or operation.old is None:
            if wrong:
                raise errors.invalid("", "Namespace", _name(obj), wrong)
            self._warn_if_exempt(operation, obj, new, labels)
            return None
        old, old_wrong = self._policy(_labels(operation.old))
        if wrong and list(map(str, wrong)) != list(map(str, old_wrong)):
            raise errors.invalid("", "Namespace", _name(obj), wrong)
        if new.enforce == old.enforce or new.enforce.level is PodSecurityLevel.PRIVILEGED:
            return None
        relaxed = new.enforce.level.strictness <= old.enforce.level.strictness
        if new.enforce.minor == old.enforce.minor and relaxed:
            return None
        if _name(obj) in self._configuration.namespaces:
            self._warn_if_exempt(operation, obj, new, labels)
            return None
        return self._warn_of_pods(operation, _name(obj), new.enforce)

    def _warn_if_exempt(
        self, operation: Operation, obj: Object, policy: PodSecurityPolicy, labels: dict[str, str]
    ) -> None:
        if _name(obj) not in self._configuration.namespaces:
            return
        if policy.is_privileged or policy == self._configuration.defaults:
            return
        shown = [
            f"{mode}={chosen}"
            for mode, chosen in zip(_MODES, policy, strict=True)
            if chosen.level is not PodSecurityLevel.PRIVILEGED
            and (PREFIX + mode in labels or f"{PREFIX}{mode}-version" in labels)
        ]
        operation.warn(
            f'namespace "{_name(obj)}" is exempt from Pod Security, and the policy '
            f"({', '.join(shown)}) will be ignored"
        )

    async def _warn_of_pods(
        self, operation: Operation, namespace: str, enforce: LevelVersion
    ) -> None:
        """Warn of pods that violate the new level, within a bounded number and time."""
        pods = self._prioritized(list(self._pods.in_namespace(namespace)))
        until = monotonic() + min(_MOST_SECONDS, operation.seconds_left() / 2)
        found: dict[str, list[str]] = {}
        checked = 0
        for pod in pods[:_MOST_PODS]:
            reasons = ", ".join(each.reason for each in violations(enforce, _view(pod)))
            if reasons:
                found.setdefault(reasons, []).append(_name(pod))
            checked += 1
            if monotonic() > until:
                break
            if checked % _PAUSE_AFTER == 0:
                await asyncio.sleep(0)
        if checked < len(pods):
            operation.warn(
                f"new PodSecurity enforce level only checked against the first {checked} of "
                f"{len(pods)} existing pods"
            )
        if found:
            operation.warn(
                f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce '
                f'level "{enforce}"'
            )
        for text in sorted(f"{_first_of(names)}: {reasons}" for reasons, names in found.items()):
            operation.warn(text)

    def _prioritized(self, pods: list[Object]) -> list[Object]:
        """Return the pods without exempt ones, one of each controller first."""
        first: list[Object] = []
        replicas: list[Object] = []
        seen: set[str] = set()
        for pod in pods:
            if self._is_exempt_class(pod.get("spec") or {}):
                continue
            owners = pod["metadata"].get("ownerReferences") or ()
            uid = next((str(each.get("uid")) for each in owners if each.get("controller")), "")
            (replicas if uid in seen else first).append(pod)
            if uid:
                seen.add(uid)
        return [*first, *replicas]

    # --- pods ----------------------------------------------------------------------------------

    def _validate_pod(self, operation: Operation, pod: Object) -> None:
        if self._is_exempt(operation):
            return
        policy, wrong = self._policy(self._labels_of(operation.target.namespace))
        if not wrong and policy.is_privileged:
            operation.annotate(PREFIX + "enforce-policy", "privileged:latest")
            return
        if operation.verb is Verb.UPDATE and not _changes_images(pod, operation.old or {}):
            return
        self._evaluate(operation, policy, wrong, _view(pod), enforced=True)

    def _validate_template(self, operation: Operation, obj: Object, path: tuple[str, ...]) -> None:
        if self._is_exempt(operation):
            return
        policy, wrong = self._policy(self._labels_of(operation.target.namespace))
        modes = (policy.warn.level, policy.audit.level)
        if not wrong and all(level is PodSecurityLevel.PRIVILEGED for level in modes):
            return
        template: Any = obj
        for step in path:
            template = (template or {}).get(step)
        if template is not None:
            self._evaluate(operation, policy, wrong, _view(template), enforced=False)

    def _evaluate(
        self,
        operation: Operation,
        policy: PodSecurityPolicy,
        wrong: list[Any],
        pod: PodView,
        *,
        enforced: bool,
    ) -> None:
        if self._is_exempt_class(pod.spec):
            operation.annotate(PREFIX + "exempt", "runtimeClass")
            return
        if wrong:
            told = str(wrong[0]) if len(wrong) == 1 else f"[{', '.join(map(str, wrong))}]"
            operation.annotate(PREFIX + "error", f"Failed to parse policy: {told}")
        found = {mode: _violations_text(mode, pod) for mode in set(policy)}
        audited, warned = found[policy.audit], found[policy.warn]
        if enforced:
            operation.annotate(PREFIX + "enforce-policy", str(policy.enforce))
        if audited:
            operation.annotate(PREFIX + "audit-violations", _would(policy.audit, audited))
        if enforced and found[policy.enforce]:
            serving = operation.target.serving
            raise errors.forbidden(
                serving.group,
                serving.plural,
                _name(operation.obj or {}),
                f'violates PodSecurity "{policy.enforce}": {found[policy.enforce]}',
            )
        if warned:
            operation.warn(_would(policy.warn, warned))

    def _is_exempt(self, operation: Operation) -> bool:
        if operation.target.namespace in self._configuration.namespaces:
            operation.annotate(PREFIX + "exempt", "namespace")
            return True
        if operation.asked.user.name in self._configuration.usernames:
            operation.annotate(PREFIX + "exempt", "user")
            return True
        return False

    def _is_exempt_class(self, spec: Object) -> bool:
        return spec.get("runtimeClassName") in self._configuration.runtime_classes

    def _labels_of(self, namespace: str) -> dict[str, str]:
        found = self._namespaces.get(namespace)
        return {} if found is None else _labels(found)

    def _policy(self, labels: dict[str, str]) -> tuple[PodSecurityPolicy, list[Any]]:
        return read_policy(labels, self._configuration.defaults)


def _view(pod: Object) -> PodView:
    return PodView(pod.get("metadata") or {}, pod.get("spec") or {})


def _violations_text(policy: LevelVersion, pod: PodView) -> str:
    return ", ".join(map(str, violations(policy, pod)))


def _would(policy: LevelVersion, told: str) -> str:
    return f'would violate PodSecurity "{policy}": {told}'


def _labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _name(obj: Object) -> str:
    return str(obj.get("metadata", {}).get("name", ""))


def _first_of(names: list[str]) -> str:
    others = len(names) - 1
    if others == 0:
        return names[0]
    return f"{min(names)} (and {others} other pod{'s' if others > 1 else ''})"


def _changes_images(pod: Object, old: Object) -> bool:
    """Return whether an update adds containers or changes images, the only fields that matter."""
    now, before = pod.get("spec") or {}, old.get("spec") or {}
    for kind in ("initContainers", "containers"):
        images = [item.get("image") for item in now.get(kind) or ()]
        if images != [item.get("image") for item in before.get(kind) or ()]:
            return True
    known = {
        item.get("name"): item.get("image") for item in before.get("ephemeralContainers") or ()
    }
    return any(
        item.get("name") not in known or known[item.get("name")] != item.get("image")
        for item in now.get("ephemeralContainers") or ()
    )
