"""The status that a kubelet would report for a pod in a phase; pure functions.

``simulation.py`` patches it into the pod's status subresource.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.tools.nodes.pod_rules import PodRule

_RUNNING, _SUCCEEDED = "Running", "Succeeded"


def pod_status(pod: Object, rule: PodRule, address: str, now: str) -> Object:
    """Return the status for ``rule.then``. The pod's address and start time are kept if its
    status already has them."""
    old, spec = pod.get("status") or {}, pod.get("spec") or {}
    ready = rule.then == _RUNNING and rule.ready
    status: Object = {
        "phase": rule.then,
        "startTime": old.get("startTime") or now,
        "podIP": old.get("podIP") or address,
        "conditions": _conditions(old.get("conditions") or [], rule, ready, now),
        "containerStatuses": [
            _container(container, old, rule, ready, now)
            for container in spec.get("containers") or ()
        ],
    }
    if spec.get("initContainers"):
        done = PodRule(then=_SUCCEEDED)
        status["initContainerStatuses"] = [
            _container(container, old, done, True, now) for container in spec["initContainers"]
        ]
    status["podIPs"] = [{"ip": status["podIP"]}]
    if rule.reason:
        status["reason"] = rule.reason
    return status


def _conditions(old: list[Object], rule: PodRule, ready: bool, now: str) -> list[Object]:
    found = {condition["type"]: condition for condition in old}
    ended = rule.then != _RUNNING
    completed = {"reason": "PodCompleted"} if rule.then == _SUCCEEDED else {}
    for kind, holds in (
        ("PodScheduled", True),
        ("PodReadyToStartContainers", not ended),
        ("Initialized", True),
        ("ContainersReady", ready),
        ("Ready", ready),
    ):
        state = "True" if holds else "False"
        before = found.get(kind) or {}
        since = before.get("lastTransitionTime") if before.get("status") == state else now
        found[kind] = {"type": kind, "status": state, "lastTransitionTime": since or now}
        if not holds:
            found[kind] |= completed
    return list(found.values())


def _container(container: Object, old: Object, rule: PodRule, ready: bool, now: str) -> Object:
    name, image = container["name"], container.get("image") or ""
    before: Object = next(
        (one for one in old.get("containerStatuses") or () if one.get("name") == name), {}
    )
    started = ((before.get("state") or {}).get("running") or {}).get("startedAt") or now
    state: Object = {"running": {"startedAt": started}}
    if rule.then != _RUNNING:
        state = {
            "terminated": {
                "exitCode": rule.exit_code,
                "reason": "Completed" if rule.exit_code == 0 else rule.reason or "Error",
                "startedAt": started,
                "finishedAt": now,
            }
        }
    return {
        "name": name,
        "image": image,
        "imageID": image,
        "containerID": f"simulated://{name}",
        "ready": ready,
        "started": rule.then == _RUNNING,
        "restartCount": before.get("restartCount") or 0,
        "state": state,
    }
