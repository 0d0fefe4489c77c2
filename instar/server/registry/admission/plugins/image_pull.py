"""AlwaysPullImages: every image of a pod is pulled anew, so that its credentials are checked.

The admission chain calls it on request, for pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.errors import forbidden
from instar.base.field_errors import not_supported
from instar.base.json_values import Object
from instar.server.registry.resources.admission import Interest, Operation, Verb
from instar.server.registry.resources.serving import Serving

_ALWAYS = "Always"
_MEMBERS = ("initContainers", "containers", "ephemeralContainers")


class AlwaysPullImages:
    def interest(self, serving: Serving, verb: Verb) -> Interest:
        pods = (serving.group, serving.plural) == ("", "pods")
        return Interest.BOTH if pods and verb in (Verb.CREATE, Verb.UPDATE) else Interest.NONE

    def admit(self, operation: Operation) -> None:
        if operation.obj is None or not _is_concerned(operation, operation.obj):
            return
        for _, holder, member in _policies(operation.obj["spec"]):
            holder[member] = _ALWAYS

    def validate(self, operation: Operation) -> None:
        if operation.obj is None or not _is_concerned(operation, operation.obj):
            return
        for path, holder, member in _policies(operation.obj["spec"]):
            given = holder.get(member, "")
            if given != _ALWAYS:
                error = not_supported(f"{path}.{member}", given, [_ALWAYS])
                raise forbidden("", "pods", operation.name, str(error))


def _is_concerned(operation: Operation, pod: Object) -> bool:
    if operation.subresource:
        return False
    return operation.old is None or not _images(pod) <= _images(operation.old)


def _images(pod: Object) -> set[str]:
    spec = pod.get("spec") or {}
    return {each.get("image", "") for member in _MEMBERS for each in spec.get(member) or ()}


def _policies(spec: Object) -> Iterator[tuple[str, Object, str]]:
    """Each place of a pull policy: its path, the object that has it, the name of the member."""
    for member in _MEMBERS:
        for index, container in enumerate(spec.get(member) or ()):
            yield f"spec.{member}[{index}]", container, "imagePullPolicy"
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("image") is not None:
            yield f"spec.volumes[{index}].image", volume["image"], "pullPolicy"
