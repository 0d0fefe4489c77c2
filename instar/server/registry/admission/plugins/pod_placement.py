"""PodNodeSelector, ExtendedResourceToleration and LimitPodHardAntiAffinityTopology: where pods go.

All three are off by default. If enabled, the admission chain
(``server/lifecycle/admission_setup.py``) calls them for pods. ``lifecycle/admission_config.py``
reads the configuration of PodNodeSelector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base import errors
from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import is_extended
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend

NODE_SELECTOR = "PodNodeSelector"
_MEMBER = "podNodeSelectorPluginConfig"
_CLUSTER_DEFAULT = "clusterDefaultNodeSelector"
_ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector"
_HOST_NAME = "kubernetes.io/hostname"


class BadNodeSelector(ValueError):
    """One line that says what is wrong with a selector or a configuration."""


def read_node_selectors(document: Any) -> dict[str, dict[str, str]]:
    """Selectors by namespace, and the default of the cluster. Raises ``BadNodeSelector``."""
    given = document.get(_MEMBER) if isinstance(document, dict) else None
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(one, str) for one in given.values()):
        raise BadNodeSelector(f"{_MEMBER}: expected a selector for each namespace")
    return {name: read_selector(text) for name, text in given.items()}


def read_selector(text: str) -> dict[str, str]:
    """``key=value`` with commas. Raises ``BadNodeSelector``."""
    found = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or "=" in value:
            raise BadNodeSelector(f"invalid selector: [{part}]")
        found[key.strip()] = value.strip()
    return found


class PodNodeSelector:
    def __init__(self, backend: Backend, selectors: Mapping[str, Mapping[str, str]]) -> None:
        self._namespaces, self._selectors = Lookup(backend, "", "namespaces"), selectors

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return _of_pods(serving, verb, (Verb.CREATE,), PluginPhases.BOTH)

    def admit(self, operation: Operation) -> None:
        if operation.obj is None or operation.subresource:
            return
        wanted, spec = self._namespace_selector(operation), operation.obj["spec"]
        _check_agreement(operation, wanted, spec.get("nodeSelector") or {})
        merged = {**wanted, **(spec.get("nodeSelector") or {})}
        if merged:
            spec["nodeSelector"] = merged
        self.validate(operation)

    def validate(self, operation: Operation) -> None:
        if operation.obj is None or operation.subresource:
            return
        own = operation.obj["spec"].get("nodeSelector") or {}
        _check_agreement(operation, self._namespace_selector(operation), own)
        allowed = self._selectors.get(operation.target.namespace)
        if allowed and not own.items() <= allowed.items():
            text = "pod node label selector labels conflict with its namespace whitelist"
            raise errors.forbidden("", "pods", operation.name, text)

    def _namespace_selector(self, operation: Operation) -> Mapping[str, str]:
        namespace = self._namespaces.get(operation.target.namespace) or {}
        annotations = (namespace.get("metadata") or {}).get("annotations") or {}
        if _ANNOTATION not in annotations:
            return self._selectors.get(_CLUSTER_DEFAULT, {})
        try:
            return read_selector(annotations[_ANNOTATION])
        except BadNodeSelector as error:
            raise errors.forbidden("", "pods", operation.name, str(error)) from error


def _check_agreement(
    operation: Operation, wanted: Mapping[str, str], own: Mapping[str, str]
) -> None:
    if any(own.get(key, value) != value for key, value in wanted.items()):
        text = "pod node label selector conflicts with its namespace node label selector"
        raise errors.forbidden("", "pods", operation.name, text)


class ExtendedResourceToleration:
    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return _of_pods(serving, verb, (Verb.CREATE, Verb.UPDATE), PluginPhases.ADMIT)

    def admit(self, operation: Operation) -> None:
        if operation.obj is None or operation.subresource:
            return
        spec = operation.obj["spec"]
        tolerations = list(spec.get("tolerations") or ())
        for name in sorted(_extended_resources(spec)):
            wanted = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
            if wanted not in tolerations:
                tolerations.append(wanted)
        if tolerations:
            spec["tolerations"] = tolerations

    def validate(self, operation: Operation) -> None:
        return


def _extended_resources(spec: Object) -> set[str]:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    names = {
        name
        for container in containers
        for name in (container.get("resources") or {}).get("requests") or {}
    }
    return {name for name in names if is_extended(name)}


class LimitPodHardAntiAffinityTopology:
    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return _of_pods(serving, verb, (Verb.CREATE, Verb.UPDATE), PluginPhases.VALIDATE)

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> None:
        if operation.obj is None or operation.subresource:
            return
        affinity = (operation.obj["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            key = term.get("topologyKey", "")
            if key != _HOST_NAME:
                text = (
                    "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey "
                    f"{key} but only key {_HOST_NAME} is allowed"
                )
                raise errors.forbidden("", "pods", operation.name, text)


def _of_pods(
    serving: Serving, verb: Verb, verbs: tuple[Verb, ...], part: PluginPhases
) -> PluginPhases:
    pods = (serving.group, serving.plural) == ("", "pods")
    return part if pods and verb in verbs else PluginPhases.NONE
