"""The eviction subresource of pods: deletes a pod if its PodDisruptionBudget allows it.

``server/rest/pods/pod_verbs.py`` calls ``evict_pod``. The disruption controller computes the
budget's numbers; an eviction reads them and takes one disruption off.
"""

from __future__ import annotations

from dataclasses import replace

import orjson

from instar.base import errors
from instar.base.json_values import Object, copy_json
from instar.kube.api.label_selector import selector_of
from instar.kube.api.names import GroupVersionKind
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.conditions import is_true, set_condition
from instar.server.registry.verbs.delete import check_preconditions, delete
from instar.server.registry.verbs.delete_options import DeleteOptions
from instar.server.registry.verbs.subresources.admission import admit_posted_object
from instar.server.registry.verbs.write import update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules

_MOST_DISRUPTED_PODS = 2000
"""With more unconfirmed evictions in the budget, a further one is refused."""
_STATUS = UpdateRules("status", unconditional=True, uid_is_precondition=False, admitted=True)
_KIND = GroupVersionKind("policy", "v1", "Eviction")
_REASON = "EvictionByEvictionAPI"


async def evict_pod(
    context: Context,
    target: Target,
    eviction: Object,
    budgets: Target,
    how: DeleteOptions,
    options: WriteOptions,
) -> None:
    """Evict one pod. ``budgets`` is the collection of budgets in its namespace."""
    await admit_posted_object(context, target, eviction, options, "eviction", _KIND)
    pod = await _pod(context, target)
    quiet = replace(options, dry_run=options.dry_run or how.dry_run, warn=lambda text: None)
    if not _needs_no_budget(pod):
        await _ask_budget(context, pod, budgets, quiet)
    if not quiet.dry_run:
        marked = await _mark(context, target, quiet, how)
        if how.resource_version is not None:  # the condition made a new one
            how = replace(how, resource_version=marked)
    await delete(context, target, replace(how, dry_run=quiet.dry_run, admitted=True))


async def _pod(context: Context, target: Target) -> Object:
    if target.entry() is None:
        await context.backend.consistent()
    entry = target.entry()
    if entry is None:
        raise errors.not_found(target.serving.group, target.serving.plural, target.name)
    return (await target.codec.objects([entry], target.version))[0]


def _needs_no_budget(pod: Object) -> bool:
    """Return whether the pod is finished, not started or terminating, so that its deletion disrupts
    nothing."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


async def _ask_budget(
    context: Context, pod: Object, budgets: Target, options: WriteOptions
) -> None:
    found = await _budgets_of(pod, budgets)
    if len(found) > 1:
        raise errors.Unclassified(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    if not found or (not is_true(pod, "Ready") and _spares_unready(found[0])):
        return
    name = pod["metadata"]["name"]

    async def propose(old: Object, entry: CacheEntry) -> Proposal:
        check_budget(old)
        new = copy_json(old)
        _spend(new, name, context.timestamp(), dry_run=options.dry_run)
        return Proposal(new, old["metadata"].get("managedFields") or [])

    budget = budgets.named(found[0]["metadata"]["name"])
    await update(context, budget, propose, options, _STATUS)


async def _budgets_of(pod: Object, budgets: Target) -> list[Object]:
    labels = pod["metadata"].get("labels")
    if not labels:
        return []
    objects = budgets.resource.objects
    entries = [objects.entries[key] for key in objects.suffixes(f"{budgets.namespace}/")]
    found = await budgets.codec.objects(entries, budgets.version)
    selectors = [selector_of((one.get("spec") or {}).get("selector")) for one in found]
    return [
        one
        for one, selector in zip(found, selectors, strict=True)
        if selector is not None and selector.matches(labels)
    ]


def _spares_unready(budget: Object) -> bool:
    """Return whether an unready pod may be evicted although no disruption is allowed."""
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def check_budget(budget: Object) -> None:
    """Raise 429 or 403 if the budget does not allow another disruption."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        raise _refused(text, retry_after=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED_PODS:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _forbidden(name, text)
    if not allowed:
        desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refused(
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )


def _spend(budget: Object, pod: str, now: str, *, dry_run: bool) -> None:
    status = budget["status"]
    status["disruptionsAllowed"] -= 1
    if not status["disruptionsAllowed"]:
        condition = {
            "type": "DisruptionAllowed",
            "status": "False",
            "observedGeneration": status.get("observedGeneration", 0),
            "reason": "InsufficientPods",
            "message": "",
        }
        set_condition(budget, condition, now)
    if not dry_run:
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: now}


async def _mark(context: Context, target: Target, options: WriteOptions, how: DeleteOptions) -> str:
    """Set the pod's condition, if it is the pod that ``how`` names; return its revision."""

    async def propose(old: Object, entry: CacheEntry) -> Proposal:
        check_preconditions(target, old["metadata"], entry, how)
        new = copy_json(old)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "reason": _REASON,
            "message": "Eviction API: evicting",
        }
        set_condition(new, condition, context.timestamp())
        return Proposal(new, old["metadata"].get("managedFields") or [])

    marked = orjson.loads((await update(context, target, propose, options, _STATUS)).view)
    version: str = marked["metadata"]["resourceVersion"]
    return version


def _forbidden(name: str, why: str) -> errors.Forbidden:
    return errors.forbidden("policy", "poddisruptionbudgets", name, why)


def _refused(why: str, retry_after: int = 0) -> errors.TooManyRequests:
    return errors.TooManyRequests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details={"causes": [{"reason": "DisruptionBudget", "message": why}]},
        retry_after=retry_after,
    )
