"""Validates pod updates: immutable fields, and the subresources ephemeralcontainers and resize.

Called by ``server/registry/kinds/workloads/pods.py``.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, child, forbidden, index, invalid, required
from instar.base.json_values import Object, copy_json
from instar.kube.builtin_rules.basics import MOST_INT32
from instar.kube.builtin_rules.go_internal_text import difference, internal
from instar.kube.builtin_rules.pods.containers import ephemeral_container_errors
from instar.kube.builtin_rules.pods.pod_spec import pod_errors
from instar.kube.builtin_rules.pods.scheduling import gate_errors, toleration_errors
from instar.kube.builtin_rules.pods.volumes import volume_errors

_MUTABLE_FIELDS = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_LISTS = ("containers", "initContainers")
_RESIZED = ("resources", "resizePolicy")


def change_errors(new: Object, old: Object) -> list[FieldError]:
    """Check an update; both arguments are specs."""
    found = pod_errors(new)
    for name in _LISTS:
        if len(new.get(name) or ()) != len(old.get(name) or ()):
            text = "pod updates may not add or remove containers"
            return [*found, forbidden(f"spec.{name}", text)]
    found += _image_errors(new)
    found += _deadline_errors(new, old)
    found += _toleration_errors(new, old)
    found += _gate_errors(new, old)
    if new == old:
        return found
    munged = _with_old_parts(new, old)
    if munged == old:
        return found
    before, after = internal("PodSpec", old), internal("PodSpec", munged)
    text = (
        f"pod updates may not change fields other than {_MUTABLE_FIELDS}\n"
        f"{difference(before, after)}"
    )
    return [*found, forbidden("spec", text)]


def _image_errors(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name in _LISTS:
        for position, container in enumerate(spec.get(name) or ()):
            where = child(index(f"spec.{name}", position), "image")
            image = container.get("image", "")
            if not image:
                found.append(required(where))
            elif image != image.strip():
                text = "must not have leading or trailing whitespace"
                found.append(invalid(where, image, text))
    return found


def _deadline_errors(new: Object, old: Object) -> list[FieldError]:
    wanted, present = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    where = "spec.activeDeadlineSeconds"
    if wanted is None:
        text = "must not update from a positive integer to nil value"
        return [] if present is None else [invalid(where, None, text)]
    if not 0 <= wanted <= MOST_INT32:
        return [invalid(where, wanted, f"must be between 0 and {MOST_INT32}, inclusive")]
    if present is not None and present < wanted:
        return [invalid(where, wanted, "must be less than or equal to previous value")]
    return []


def _toleration_errors(new: Object, old: Object) -> list[FieldError]:
    wanted, present = new.get("tolerations") or [], old.get("tolerations") or []
    if wanted == present:
        return []
    gone = [one for one in present if _without_seconds(one) not in map(_without_seconds, wanted)]
    if gone:
        text = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden("spec.tolerations", text)]
    return toleration_errors(wanted, "spec.tolerations")


def _without_seconds(toleration: Object) -> Object:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _gate_errors(new: Object, old: Object) -> list[FieldError]:
    known = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    found: list[FieldError] = []
    for position, gate in enumerate(new.get("schedulingGates") or ()):
        name = gate.get("name", "")
        if name not in known:
            where = f"spec.schedulingGates[{position}].name"
            text = f"only deletion is allowed, but found new scheduling gate '{name}'"
            found.append(forbidden(where, text))
    return found or gate_errors(new.get("schedulingGates") or [], "spec.schedulingGates")


def _with_old_parts(new: Object, old: Object) -> Object:
    """Return the new spec with the old values of all mutable fields."""
    munged: Object = copy_json(new)
    for name in _LISTS:
        for container, former in zip(munged.get(name) or (), old.get(name) or (), strict=False):
            container["image"] = former.get("image", "")
    free = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    grace = old.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and new.get("terminationGracePeriodSeconds") == 1:
        free.append("terminationGracePeriodSeconds")
    if old.get("schedulingGates") and _only_narrows(new, old):
        free += ["nodeSelector", "affinity"]
    for name in free:
        if name in old:
            munged[name] = old[name]
        else:
            munged.pop(name, None)
    return munged


def _only_narrows(new: Object, old: Object) -> bool:
    """Return whether a gated pod's node selector only became stricter."""
    wanted, present = new.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    return all(wanted.get(key) == value for key, value in present.items())


def with_ephemeral_containers(old: Object, new: Object) -> Object:
    """Return the old spec with the ephemeral containers of the new one: a write to
    ``ephemeralcontainers`` changes nothing else."""
    spec = {name: value for name, value in old.items() if name != "ephemeralContainers"}
    if new.get("ephemeralContainers"):
        spec["ephemeralContainers"] = new["ephemeralContainers"]
    return spec


def has_same_containers(new: Object, old: Object) -> bool:
    """Return whether both specs have as many containers. A resize that adds or removes some is
    refused, so nothing of it is dropped before."""
    return all(len(new.get(name) or ()) == len(old.get(name) or ()) for name in _LISTS)


def with_resources(old: Object, new: Object) -> Object:
    """Return the old spec with the resources and resize policies of the new one: a write to
    ``resize`` changes nothing else."""
    spec = {name: value for name, value in old.items() if name != "resources"}
    if "resources" in new:
        spec["resources"] = new["resources"]
    for name in _LISTS:
        wanted, present = new.get(name) or [], old.get(name) or []
        if [one.get("name") for one in wanted] != [one.get("name") for one in present]:
            spec[name] = wanted
        elif wanted:
            pairs = zip(present, wanted, strict=True)
            spec[name] = [_resized(before, after) for before, after in pairs]
    return spec


def _resized(container: Object, wanted: Object) -> Object:
    kept = {name: value for name, value in container.items() if name not in _RESIZED}
    return kept | {name: wanted[name] for name in _RESIZED if name in wanted}


def ephemeral_errors(new: Object, old: Object) -> list[FieldError]:
    """Check an update of ephemeral containers; both arguments are specs."""
    path = "spec.ephemeralContainers"
    wanted = new.get("ephemeralContainers") or []
    _, volumes = volume_errors(new.get("volumes") or [], "spec.volumes")
    found = ephemeral_container_errors(wanted, new, volumes, path)
    named = {one.get("name"): one for one in wanted}
    for present in old.get("ephemeralContainers") or ():
        name = present.get("name")
        if name not in named:
            text = f'existing ephemeral containers "{name}" may not be removed\n'
            found.append(forbidden(path, text))
        elif named[name] != present:
            text = f'existing ephemeral containers "{name}" may not be changed\n'
            found.append(forbidden(path, text + difference(present, named[name])))
    return found


def resize_errors(new: Object, old: Object, qos: str) -> list[FieldError]:
    """Check a resize; both arguments are pods, ``qos`` is the QoS class with the new resources."""
    found: list[FieldError] = []
    present = (old.get("status") or {}).get("qosClass", "")
    if qos != present:
        text = "Pod QOS Class may not change as a result of resizing"
        found.append(invalid("spec", present, text))
    if not _node_resizes(old):
        found.append(forbidden("spec", "Pod running on node without support for resize"))
    munged: Object = copy_json(new["spec"])
    for name in _LISTS:
        former = old["spec"].get(name) or ()
        for container, other in zip(munged.get(name) or (), former, strict=False):
            container["resources"] = other.get("resources") or {}
    if not found and munged != old["spec"]:
        before, after = internal("PodSpec", old["spec"]), internal("PodSpec", munged)
        text = f"only cpu and memory resources are mutable\n{difference(before, after)}"
        found.append(forbidden("spec", text))
    return found


def _node_resizes(pod: Object) -> bool:
    """Return whether the node supports resizing: then it reports resources of running
    containers."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if (status.get("state") or {}).get("running") is not None:
            return status.get("resources") is not None
    return True
