"""Validates PersistentVolumes, claims, StorageClasses, CSI drivers and nodes, VolumeAttachments.

Called by ``server/registry/kinds/storage.py``.
"""

from __future__ import annotations

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    key,
    not_supported,
    required,
    too_long,
)
from instar.base.json_values import Object, same_json
from instar.kube.api.string_rules import dns1123_subdomain, qualified_name
from instar.kube.builtin_rules.basics import (
    IMMUTABLE,
    choice_errors,
    count_errors,
    immutable_errors,
    texts_at,
)
from instar.kube.builtin_rules.claims import POSITIVE, VOLUME_MODES, access_mode_errors
from instar.kube.builtin_rules.go_internal_text import difference, internal
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.kube.builtin_rules.pods.scheduling import node_selector_errors
from instar.kube.builtin_rules.pods.volumes import HOST_PATH_TYPES

_SOURCES = (
    "gcePersistentDisk", "awsElasticBlockStore", "hostPath", "glusterfs", "nfs", "rbd", "iscsi",
    "cinder", "cephfs", "fc", "flocker", "flexVolume", "azureFile", "vsphereVolume", "quobyte",
    "azureDisk", "photonPersistentDisk", "portworxVolume", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
_MOST_TEXT = 256 * 1024
_VOLUME_FROZEN = "spec.persistentvolumesource is immutable after creation"
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_MOUNTED = frozenset((
    "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi",
    "cinder", "cephfs", "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk",
))  # fmt: skip
"""Sources that are mounted with options."""


def volume_errors(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    found: list[FieldError] = []
    if not spec.get("accessModes"):
        found.append(required("spec.accessModes"))
    found += access_mode_errors(spec.get("accessModes") or [])
    found += _capacity_errors(spec.get("capacity"))
    found += _source_errors(spec)
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy:
        where = "spec.persistentVolumeReclaimPolicy"
        found += choice_errors(policy, where, ("Delete", "Recycle", "Retain"))
        if policy == "Recycle" and (spec.get("hostPath") or {}).get("path") == "/":
            found.append(forbidden(where, "may not be 'recycle' for a hostPath mount of '/'"))
    if spec.get("storageClassName"):
        name = spec["storageClassName"]
        found += texts_at("spec.storageClassName", name, dns1123_subdomain(name))
    if spec.get("volumeMode") is not None:
        found += choice_errors(spec["volumeMode"], "spec.volumeMode", VOLUME_MODES)
    return found + _mount_option_errors(obj)


def _mount_option_errors(obj: Object) -> list[FieldError]:
    annotated = _MOUNT_OPTIONS in (obj["metadata"].get("annotations") or {})
    if not annotated or not _MOUNTED.isdisjoint(obj["spec"]):
        return []
    text = "may not specify mount options for this volume type"
    return [forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", text)]


def _capacity_errors(capacity: Object | None) -> list[FieldError]:
    found: list[FieldError] = []
    if not capacity:
        found.append(required("spec.capacity"))
    if not capacity or set(capacity) != {"storage"}:
        shown = dict(sorted(capacity.items())) if capacity else None
        found.append(not_supported("spec.capacity", shown, ("storage",)))
    for name, amount in (capacity or {}).items():
        value = quantity_value(amount)
        if value < 0:
            text = "must be a valid resource quantity"
            found.append(invalid(key("spec.capacity", name), int(value), text))
        if value <= 0:
            found.append(invalid(key("spec.capacity", name), amount, POSITIVE))
    return found


def _source_errors(spec: Object) -> list[FieldError]:
    given = [name for name in _SOURCES if spec.get(name) is not None]
    affinity = spec.get("nodeAffinity")
    found: list[FieldError] = []
    if affinity is not None:
        if affinity.get("required") is None:
            found.append(
                required("spec.nodeAffinity.required", "must specify required node constraints")
            )
        else:
            found += node_selector_errors(affinity["required"], "spec.nodeAffinity.required")
    text = "may not specify more than 1 volume type"
    found += [forbidden(f"spec.{name}", text) for name in given[1:]]
    if not given:
        return [*found, required("spec", "must specify a volume type")]
    source = spec[given[0]]
    if given[0] == "hostPath":
        found += _host_path_errors(source)
    elif given[0] == "nfs":
        found += [
            required(f"spec.nfs.{name}") for name in ("server", "path") if not source.get(name)
        ]
    elif given[0] == "local":
        if not source.get("path"):
            found.append(required("spec.local.path"))
        if affinity is None:
            found.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    elif given[0] == "csi":
        names = ("driver", "volumeHandle")
        found += [required(f"spec.csi.{name}") for name in names if not source.get(name)]
    return found


def _host_path_errors(source: Object) -> list[FieldError]:
    if not source.get("path"):
        return [required("spec.hostPath.path")]
    type = source.get("type")
    return [] if type is None else choice_errors(type, "spec.hostPath.type", HOST_PATH_TYPES)


def volume_change_errors(new: Object, old: Object) -> list[FieldError]:
    """Check an update; repeats ``volume_errors``, which upstream reports twice on updates."""
    found: list[FieldError] = []
    after, before = (_go_source(obj["spec"]) for obj in (new, old))
    if after != before:
        text = f"{_VOLUME_FROZEN}\n{difference(before, after)}"
        found.append(forbidden("spec.persistentvolumesource", text))
    return found + immutable_errors(
        new["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode"
    )


def _go_source(spec: Object) -> Object:
    shown: Object = internal("PersistentVolumeSource", {k: spec[k] for k in _SOURCES if k in spec})
    return shown


# Claims -------------------------------------------------------------------------------------------


# Classes and drivers ------------------------------------------------------------------------------


def storage_class_errors(obj: Object) -> list[FieldError]:
    provisioner = obj.get("provisioner", "")
    found: list[FieldError] = []
    if not provisioner:
        found.append(required("provisioner"))
    else:
        shown = provisioner.lower()
        found += texts_at("provisioner", shown, qualified_name(shown))
    if "" in (obj.get("parameters") or {}):
        found.append(invalid("parameters", "", "field can not be empty."))
    policy = obj.get("reclaimPolicy")
    if policy:
        found += choice_errors(policy, "reclaimPolicy", ("Delete", "Retain"))
    mode = obj.get("volumeBindingMode")
    if mode is None:
        found.append(required("volumeBindingMode"))
    else:
        found += choice_errors(mode, "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))
    for position, term in enumerate(obj.get("allowedTopologies") or ()):
        where = child(index("allowedTopologies", position), "matchLabelExpressions")
        for at, expression in enumerate(term.get("matchLabelExpressions") or ()):
            path, name = index(where, at), expression.get("key", "")
            if not expression.get("values"):
                found.append(required(child(path, "values")))
            found += texts_at(child(path, "key"), name, qualified_name(name))
    return found


def storage_class_change_errors(new: Object, old: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        found += immutable_errors(new.get(name), old.get(name), name)
    return found


def driver_errors(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    found: list[FieldError] = []
    policy = spec.get("fsGroupPolicy")
    if policy is not None:
        choices = ("File", "None", "ReadWriteOnceWithFSType")
        found += choice_errors(policy, "spec.fsGroupPolicy", choices)
    audiences: set[str] = set()
    for position, request in enumerate(spec.get("tokenRequests") or ()):
        path = index("spec.tokenRequests", position)
        audience, seconds = request.get("audience", ""), request.get("expirationSeconds")
        if audience in audiences:
            found.append(duplicate(child(path, "audience"), audience))
        audiences.add(audience)
        if seconds is not None and seconds < 600:
            text = "may not specify a duration less than 10 minutes"
            found.append(invalid(child(path, "expirationSeconds"), seconds, text))
    for mode in spec.get("volumeLifecycleModes") or ():
        where = "spec.volumeLifecycleModes"
        found += choice_errors(mode, where, ("Persistent", "Ephemeral"))
    return found


def driver_change_errors(new: Object, old: Object) -> list[FieldError]:
    after, before = new["spec"], old["spec"]
    found = immutable_errors(
        after.get("attachRequired"), before.get("attachRequired"), "spec.attachedRequired"
    )
    name = "volumeLifecycleModes"
    return found + immutable_errors(after.get(name), before.get(name), f"spec.{name}")


def csi_node_errors(obj: Object) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for position, driver in enumerate(obj["spec"].get("drivers") or ()):
        path = index("spec.drivers", position)
        name = driver.get("name", "")
        if not name:
            found.append(required(child(path, "name")))
        else:
            found += texts_at(child(path, "name"), name, dns1123_subdomain(name))
        if not driver.get("nodeID"):
            found.append(required(child(path, "nodeID")))
        allocatable = driver.get("allocatable")
        if allocatable is not None:
            found += count_errors(allocatable, child(path, "allocatable"), "count")
        if name in names:
            found.append(duplicate(child(path, "name"), name))
        names.add(name)
        found += _topology_errors(driver.get("topologyKeys") or [], path)
    return found


def _topology_errors(keys: list[str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for name in keys:
        if not name:
            found.append(required(path))
        if name in seen:
            found.append(duplicate(path, name))
        seen.add(name)
        found += texts_at(path, name, qualified_name(name))
    return found


def csi_node_change_errors(new: Object, old: Object) -> list[FieldError]:
    known = {one.get("name"): one for one in old["spec"].get("drivers") or ()}
    found: list[FieldError] = []
    for driver in new["spec"].get("drivers") or ():
        before = known.get(driver.get("name"))
        if before is not None and before != driver:
            shown = internal("storage.k8s.io/v1#CSINodeDriver", driver)
            found.append(invalid("spec.drivers", shown, IMMUTABLE))
    return found


def attachment_errors(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    attacher, node = spec.get("attacher", ""), spec.get("nodeName", "")
    found: list[FieldError] = []
    if not attacher:
        found.append(required("spec.attacher"))
    else:
        found += texts_at("spec.attacher", attacher, dns1123_subdomain(attacher))
    source = spec.get("source") or {}
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    exactly = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        found.append(required("spec.source", exactly))
    elif name is not None and inline is not None:
        found.append(forbidden("spec.source", exactly))
    elif name is not None:
        where = "spec.source.persistentVolumeName"
        if not name:
            found.append(required(where, "must specify non empty persistentVolumeName"))
        found += texts_at(where, name, dns1123_subdomain(name))
    found += texts_at("spec.nodeName", node, dns1123_subdomain(node))
    return found


def attachment_status_errors(obj: Object) -> list[FieldError]:
    status = obj.get("status") or {}
    found: list[FieldError] = []
    for name in ("attachError", "detachError"):
        text = (status.get(name) or {}).get("message", "")
        if len(text.encode()) > _MOST_TEXT:
            found.append(too_long(f"status.{name}.message", _MOST_TEXT))
    return found


def attachment_change_errors(new: Object, old: Object) -> list[FieldError]:
    if same_json(new["spec"], old["spec"]):
        return []
    shown = internal("storage.k8s.io/v1#VolumeAttachmentSpec", new["spec"])
    return [invalid("spec", shown, IMMUTABLE)]
