"""The binding subresource of pods: sets ``spec.nodeName``, which no other update may change.

``server/rest/pods/pod_verbs.py`` calls ``bind_pod``.
"""

from __future__ import annotations

from dataclasses import replace

from instar.base import errors
from instar.base.field_errors import FieldError, messages, not_supported, required
from instar.base.json_values import Object, copy_json
from instar.kube.api.names import GroupVersionKind
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.conditions import set_condition
from instar.server.registry.verbs.subresources.admission import admit_posted_object
from instar.server.registry.verbs.write import update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules

_RESOURCE_NAME = "pods/binding"
_KIND = GroupVersionKind("", "v1", "Binding")
_SCHEDULED_CONDITION = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}


async def bind_pod(
    context: Context, target: Target, binding: Object, options: WriteOptions
) -> None:
    """Bind the pod to the node that ``binding`` names. ``binding`` is decoded already."""
    await admit_posted_object(context, target, binding, options, "binding", _KIND)
    wrong = target_errors(binding)
    if wrong:
        raise errors.Unclassified(messages(wrong))
    metadata = binding.get("metadata") or {}

    async def propose(old: Object, entry: CacheEntry) -> Proposal:
        _check_free(target, old, metadata.get("uid"))
        new = copy_json(old)
        new["spec"]["nodeName"] = binding["target"]["name"]
        for name in ("annotations", "labels"):
            if metadata.get(name):
                new["metadata"][name] = {**(old["metadata"].get(name) or {}), **metadata[name]}
        set_condition(new, _SCHEDULED_CONDITION, context.timestamp())
        return Proposal(new, old["metadata"].get("managedFields") or [])

    rules = UpdateRules("binding", unconditional=True, uid_is_precondition=False, admitted=True)
    await update(context, target, propose, replace(options, warn=lambda text: None), rules)


def target_errors(binding: Object) -> list[FieldError]:
    target = binding.get("target") or {}
    found: list[FieldError] = []
    if target.get("kind", "") not in ("", "Node"):
        found.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        found.append(required("target.name"))
    return found


def _check_free(target: Target, pod: Object, uid: str | None) -> None:
    name, spec = target.name, pod["spec"]
    why = ""
    if uid and uid != pod["metadata"].get("uid"):
        why = (
            f"Precondition failed: UID in precondition: {uid}, "
            f"UID in object meta: {pod['metadata'].get('uid', '')}"
        )
    elif "deletionTimestamp" in pod["metadata"]:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise errors.conflict("", _RESOURCE_NAME, name, why)
