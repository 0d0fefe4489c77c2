"""Pod plugins: Priority, DefaultTolerationSeconds, RuntimeClass and PodTopologyLabels.

Part of the admission chain that ``server/lifecycle/admission_setup.py`` composes; the write verbs
call it.
"""

from __future__ import annotations

from instar.base.errors import Forbidden, forbidden
from instar.base.json_values import Object
from instar.server.registry.admission.config_cache import ConfigCache
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend

_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_TOLERATION_SECONDS = 300
_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_DEFAULT_PREEMPTION = "PreemptLowerPriority"
_RESOURCES = (("", "pods"), ("", "bindings"), ("scheduling.k8s.io", "priorityclasses"))


_PRIORITY_CLASSES = ("scheduling.k8s.io", "priorityclasses")


class PodAdmission:
    """The four plugins, applied in this order."""

    def __init__(self, backend: Backend, off: frozenset[str] = frozenset()) -> None:
        """``off`` names the disabled plugins among them."""
        self._off = off
        self._priorities = ConfigCache(backend, "scheduling.k8s.io", "priorityclasses", _as_it_is)
        self._runtimes = Lookup(backend, "node.k8s.io", "runtimeclasses")
        self._nodes = Lookup(backend, "", "nodes")

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        concerned = (serving.group, serving.plural) in _RESOURCES
        return PluginPhases.ADMIT if concerned else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        serving, obj = operation.target.serving, operation.obj
        if obj is None or operation.subresource not in ("", "binding"):
            return
        if operation.subresource == "binding":
            if "PodTopologyLabels" in self._off:
                return
            self._label_place(obj, (obj.get("target") or {}).get("name"))
            return
        priority = "Priority" not in self._off
        if priority and (serving.group, serving.plural) == _PRIORITY_CLASSES:
            self._check_only_default(operation, obj)
        if (serving.group, serving.plural) != ("", "pods"):
            return
        new = operation.verb is Verb.CREATE
        if new and priority:
            self._set_priority(operation, obj["spec"])
        elif priority and operation.old is not None:
            _keep_priority(obj["spec"], operation.old["spec"])
        if "DefaultTolerationSeconds" not in self._off:
            _tolerate_trouble(obj["spec"])
        if new and "RuntimeClass" not in self._off:
            self._apply_runtime(operation, obj["spec"])
        if new and "PodTopologyLabels" not in self._off:
            self._label_place(obj, obj["spec"].get("nodeName"))

    def validate(self, operation: Operation) -> None:
        return

    def _check_only_default(self, operation: Operation, obj: Object) -> None:
        if not obj.get("globalDefault"):
            return
        for other in self._priorities.current():
            name = other["metadata"]["name"]
            if other.get("globalDefault") and name != obj["metadata"].get("name"):
                text = (
                    f"PriorityClass {name} is already marked as default. Only one default can exist"
                )
                raise _refused(operation, text)

    def _label_place(self, obj: Object, name: object) -> None:
        """Copy the zone and region labels of the pod's node, at binding."""
        node = self._nodes.get(name) if isinstance(name, str) else None
        labels = ((node or {}).get("metadata") or {}).get("labels") or {}
        found = {name: labels[name] for name in _TOPOLOGY_LABELS if name in labels}
        if found:
            obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), **found}

    def _set_priority(self, operation: Operation, spec: Object) -> None:
        name = spec.get("priorityClassName")
        chosen = self._named(name) if name else self._default_priority()
        if chosen is None and name:
            raise _refused(operation, f"no PriorityClass with name {name} was found")
        value = 0 if chosen is None else chosen.get("value", 0)
        policy = (
            _DEFAULT_PREEMPTION
            if chosen is None
            else chosen.get("preemptionPolicy", _DEFAULT_PREEMPTION)
        )
        if chosen is not None and not name:
            spec["priorityClassName"] = chosen["metadata"]["name"]
        for name, told, wanted in (
            ("priority", "integer value of priority", value),
            ("preemptionPolicy", "string value of PreemptionPolicy", policy),
        ):
            given = spec.get(name)
            if given is not None and given != wanted:
                raise _refused(
                    operation,
                    f"the {told} ({given}) must not be provided in pod spec; priority admission "
                    f"controller computed {wanted} from the given PriorityClass name",
                )
            spec[name] = wanted

    def _named(self, name: str) -> Object | None:
        """Return a PriorityClass; the two system classes exist even when not stored."""
        found = self._priorities.get(name)
        if found is None and name in _SYSTEM_PRIORITIES:
            return {"metadata": {"name": name}, "value": _SYSTEM_PRIORITIES[name]}
        return found

    def _default_priority(self) -> Object | None:
        marked = [obj for obj in self._priorities.current() if obj.get("globalDefault")]
        return min(marked, key=lambda obj: int(obj.get("value", 0)), default=None)

    def _apply_runtime(self, operation: Operation, spec: Object) -> None:
        name = spec.get("runtimeClassName")
        runtime = self._runtimes.get(name) if name else None
        if name and runtime is None:
            raise _refused(operation, f'pod rejected: RuntimeClass "{name}" not found')
        overhead = ((runtime or {}).get("overhead") or {}).get("podFixed")
        if "overhead" in spec and spec["overhead"] != overhead:
            text = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            if not overhead:
                text = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise _refused(operation, f"pod rejected: {text}")
        if overhead:
            spec["overhead"] = dict(overhead)
        scheduling = (runtime or {}).get("scheduling") or {}
        self._merge_scheduling(operation, spec, scheduling)

    def _merge_scheduling(self, operation: Operation, spec: Object, scheduling: Object) -> None:
        wanted = scheduling.get("nodeSelector") or {}
        own = spec.get("nodeSelector") or {}
        for key, value in wanted.items():
            if own.get(key, value) != value:
                raise _refused(
                    operation,
                    f"pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{key}] = "
                    f"{value}; pod.spec.nodeSelector[{key}] = {own[key]}",
                )
        if wanted:
            spec["nodeSelector"] = {**own, **wanted}
        tolerations = spec.get("tolerations") or []
        added = [one for one in scheduling.get("tolerations") or () if one not in tolerations]
        if added:
            spec["tolerations"] = [*tolerations, *added]


def _keep_priority(spec: Object, old: Object) -> None:
    """Keep what was set at the creation: manifests leave it out, and it may not change."""
    for name in ("priority", "preemptionPolicy"):
        if spec.get(name) is None and old.get(name) is not None:
            spec[name] = old[name]


def _as_it_is(obj: Object) -> Object:
    return obj


def _tolerate_trouble(spec: Object) -> None:
    """Tolerate a lost node for five minutes, unless the pod says otherwise."""
    tolerations = spec.get("tolerations") or []
    missing = [
        key
        for key in _NODE_TAINTS
        if not any(
            one.get("key") in (key, "", None) and one.get("effect") in ("NoExecute", "", None)
            for one in tolerations
        )
    ]
    if missing:
        spec["tolerations"] = [
            *tolerations,
            *(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATION_SECONDS,
                }
                for key in missing
            ),
        ]


def _refused(operation: Operation, why: str) -> Forbidden:
    serving = operation.target.serving
    metadata = (operation.obj or {}).get("metadata") or {}
    return forbidden(serving.group, serving.plural, metadata.get("name", ""), why)
