"""PodTolerationRestriction: tolerations that pods of a namespace get, and which they may have.

Off by default. If enabled, the admission chain (``server/lifecycle/admission_setup.py``) calls it
for pods. Annotations of the namespace take precedence over the configuration, which
``lifecycle/admission_config.py`` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from instar.base.config_shapes import ShapeMismatch, unknown_fields
from instar.base.errors import forbidden
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.kinds.workloads.qos import qos_class
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend

TOLERATION_RESTRICTION = "PodTolerationRestriction"
_API = "podtolerationrestriction.admission.k8s.io/v1alpha1"
_TOLERATION: Any = {
    **dict.fromkeys(("key", "operator", "value", "effect"), str),
    "tolerationSeconds": int,
}
_SHAPE: Any = {
    "apiVersion": str,
    "kind": str,
    "default": [_TOLERATION],
    "whitelist": [_TOLERATION],
}
_DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"
_ALLOWED = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_MEMORY_PRESSURE = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}


class BadTolerations(ValueError):
    """One line that says what is wrong with the configuration."""


@dataclass(frozen=True)
class TolerationRules:
    """Tolerations of the cluster, for namespaces without annotations."""

    default: tuple[Object, ...] = ()
    allowed: tuple[Object, ...] = ()


def read_tolerations(document: Any) -> TolerationRules:
    """Raises ``BadTolerations``."""
    try:
        unknown = unknown_fields(document, _SHAPE)
    except ShapeMismatch as error:
        raise BadTolerations(str(error)) from error
    if (document.get("apiVersion"), document.get("kind")) != (_API, "Configuration"):
        raise BadTolerations(f"expected {_API}, Configuration")
    if unknown:
        raise BadTolerations(f'strict decoding error: unknown field "{unknown[0]}"')
    default, allowed = (
        tuple(one or {} for one in document.get(member) or ())
        for member in ("default", "whitelist")
    )
    return TolerationRules(default, allowed)


class PodTolerationRestriction:
    def __init__(self, backend: Backend, rules: TolerationRules) -> None:
        self._namespaces, self._rules = Lookup(backend, "", "namespaces"), rules

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        pods = (serving.group, serving.plural) == ("", "pods")
        return (
            PluginPhases.BOTH if pods and verb in (Verb.CREATE, Verb.UPDATE) else PluginPhases.NONE
        )

    def admit(self, operation: Operation) -> None:
        if operation.obj is None or operation.subresource:
            return
        spec = operation.obj["spec"]
        added: list[Object] = []
        if operation.verb is Verb.CREATE:
            given = self._annotated(operation, _DEFAULTS)
            added += self._rules.default if given is None else given
        if qos_class(spec) != "BestEffort":
            added.append(dict(_MEMORY_PRESSURE))
        if added:
            spec["tolerations"] = merged_tolerations([*(spec.get("tolerations") or ()), *added])
        self.validate(operation)

    def validate(self, operation: Operation) -> None:
        if operation.obj is None or operation.subresource:
            return
        tolerations = operation.obj["spec"].get("tolerations") or ()
        if not tolerations:
            return
        given, scope = self._annotated(operation, _ALLOWED), "namespace"
        if given is None:
            given, scope = self._rules.allowed, "cluster"
        if given and not all(_is_covered(one, given) for one in tolerations):
            raise _refused(
                operation,
                "pod tolerations (possibly merged with namespace default tolerations) "
                f"conflict with its {scope} whitelist",
            )

    def _annotated(self, operation: Operation, annotation: str) -> Sequence[Object] | None:
        """None: the namespace does not say."""
        namespace = self._namespaces.get(operation.target.namespace) or {}
        text = ((namespace.get("metadata") or {}).get("annotations") or {}).get(annotation)
        if not text:
            return None if text is None else ()
        try:
            found = orjson.loads(text)
            unknown_fields({"default": found}, _SHAPE)
        except (orjson.JSONDecodeError, ShapeMismatch) as error:
            raise _refused(operation, f"annotation {annotation}: {error}") from error
        return [one or {} for one in found or ()]


def merged_tolerations(tolerations: Sequence[Object]) -> list[Object]:
    """Without those that another one covers; of equal ones the first stays."""
    found: list[Object] = []
    for index, one in enumerate(tolerations):
        later = [each for each in tolerations[index + 1 :] if each != one]
        if not _is_covered(one, [*found, *later]):
            found.append(one)
    return found


def _is_covered(one: Object, others: Iterable[Object]) -> bool:
    return any(covers(each, one) for each in others)


def covers(wide: Object, narrow: Object) -> bool:
    """Whether ``wide`` tolerates every taint that ``narrow`` does."""
    if wide == narrow:
        return True
    is_any_key = not wide.get("key") and wide.get("operator") == "Exists"
    if narrow.get("key", "") != wide.get("key", "") and not is_any_key:
        return False
    effect = wide.get("effect", "")
    if effect and narrow.get("effect", "") != effect:
        return False
    limit, seconds = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    if effect == "NoExecute" and limit is not None and (seconds is None or seconds > limit):
        return False
    operator = wide.get("operator") or "Equal"
    if operator == "Equal":
        is_equal = narrow.get("operator") == "Equal"
        return is_equal and narrow.get("value", "") == wide.get("value", "")
    return bool(operator == "Exists")


def _refused(operation: Operation, text: str) -> Exception:
    return forbidden("", "pods", operation.name, text)
