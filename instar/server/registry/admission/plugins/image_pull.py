"""AlwaysPullImages: every image of a pod is pulled anew, so that its credentials are checked.

Off by default. If enabled, the admission chain (``server/lifecycle/admission_setup.py``) calls it
for creates and updates of pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.errors import forbidden
from instar.base.field_errors import not_supported
from instar.base.json_values import Object
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving

_ALWAYS_POLICY = "Always"
_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


class AlwaysPullImages:
    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        pods = (serving.group, serving.plural) == ("", "pods")
        return (
            PluginPhases.BOTH if pods and verb in (Verb.CREATE, Verb.UPDATE) else PluginPhases.NONE
        )

    def admit(self, operation: Operation) -> None:
        if operation.obj is None or not _is_concerned(operation, operation.obj):
            return
        for _, holder, member in _policies(operation.obj["spec"]):
            holder[member] = _ALWAYS_POLICY

    def validate(self, operation: Operation) -> None:
        if operation.obj is None or not _is_concerned(operation, operation.obj):
            return
        for path, holder, member in _policies(operation.obj["spec"]):
            given = holder.get(member, "")
            if given != _ALWAYS_POLICY:
                error = not_supported(f"{path}.{member}", given, [_ALWAYS_POLICY])
                raise forbidden("", "pods", operation.name, str(error))


def _is_concerned(operation: Operation, pod: Object) -> bool:
    if operation.subresource:
        return False
    return operation.old is None or not _images(pod) <= _images(operation.old)


def _images(pod: Object) -> set[str]:
    spec = pod.get("spec") or {}
    return {each.get("image", "") for member in _CONTAINER_LISTS for each in spec.get(member) or ()}


def _policies(spec: Object) -> Iterator[tuple[str, Object, str]]:
    """Each place of a pull policy: its path, the object that has it, the name of the member."""
    for member in _CONTAINER_LISTS:
        for index, container in enumerate(spec.get(member) or ()):
            yield f"spec.{member}[{index}]", container, "imagePullPolicy"
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("image") is not None:
            yield f"spec.volumes[{index}].image", volume["image"], "pullPolicy"
