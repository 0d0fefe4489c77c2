"""Table cells of Pods: readiness, restarts and the one-word state.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.texts import (
    NONE,
    age_of,
    condition,
    is_terminating,
    name_of,
    part,
    since,
)

_FINISHED_PHASES = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def done(pod: Object) -> list[Object]:
    """Return the Completed condition for the row of a finished pod."""
    phase = part(pod, "status").get("phase")
    if phase not in _FINISHED_PHASES:
        return []
    return [
        {"type": "Completed", "status": "True", "reason": phase, "message": _FINISHED_PHASES[phase]}
    ]


def pod(pod: Object, now: datetime) -> list[Any]:
    """Return the cells of a pod's row in a Table."""
    spec, status = part(pod, "spec"), part(pod, "status")
    seen = _PodState(pod)
    addresses = status.get("podIPs") or ()
    restarts = str(seen.restarts)
    if seen.restarts and seen.restarted:
        restarts += f" ({since(seen.restarted, now)} ago)"
    return [
        name_of(pod),
        f"{seen.ready}/{seen.total}",
        seen.reason,
        restarts,
        age_of(pod, now),
        (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(pod),
    ]


def _gates(pod: Object) -> str:
    gates = part(pod, "spec").get("readinessGates") or ()
    if not gates:
        return NONE
    met = sum(
        (condition(pod, gate.get("conditionType", "")) or {}).get("status") == "True"
        for gate in gates
    )
    return f"{met}/{len(gates)}"


class _PodState:
    """Computes readiness, restarts and state from a pod's containers."""

    def __init__(self, pod: Object) -> None:
        self._pod = pod
        spec, status = part(pod, "spec"), part(pod, "status")
        self._sidecars = {
            one.get("name")
            for one in spec.get("initContainers") or ()
            if one.get("restartPolicy") == "Always"
        }
        self.total = len(spec.get("containers") or ()) + len(self._sidecars)
        self.ready = self.restarts = 0
        self.restarted = ""
        self.reason = status.get("reason") or status.get("phase", "")
        scheduled = condition(pod, "PodScheduled")
        if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
            self.reason = "SchedulingGated"
        initialized = (condition(pod, "Initialized") or {}).get("status") == "True"
        if not self._look_at_init() or initialized:
            self._look_at_containers()
        if is_terminating(pod):
            self._leaving(status)

    def _leaving(self, status: Object) -> None:
        if status.get("reason") == "NodeLost":
            self.reason = "Unknown"
        elif status.get("phase") not in _FINISHED_PHASES:
            self.reason = "Terminating"

    def _count(self, container: Object) -> None:
        self.restarts += container.get("restartCount", 0)
        ended = part(container, "lastState", "terminated").get("finishedAt") or ""
        self.restarted = max(self.restarted, ended)

    def _look_at_init(self) -> bool:
        """Return whether the pod is still initialising."""
        total = len(part(self._pod, "spec").get("initContainers") or ())
        containers = part(self._pod, "status").get("initContainerStatuses") or ()
        for position, container in enumerate(containers):
            self._count(container)
            state = part(container, "state")
            ended = state.get("terminated")
            if ended is not None and not ended.get("exitCode"):
                continue
            if container.get("name") in self._sidecars and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            waits = part(state, "waiting").get("reason")
            if ended is not None:
                self.reason = f"Init:{_end(ended)}"
            elif waits and waits != "PodInitializing":
                self.reason = f"Init:{waits}"
            else:
                self.reason = f"Init:{position}/{total}"
            return True
        return False

    def _look_at_containers(self) -> None:
        status = part(self._pod, "status")
        self.restarts, self.restarted = 0, ""
        for container in status.get("initContainerStatuses") or ():
            if container.get("name") in self._sidecars:
                self._count(container)
        runs, trouble = False, ""
        for container in reversed(status.get("containerStatuses") or ()):
            self._count(container)
            state = part(container, "state")
            waits, ended = part(state, "waiting").get("reason"), state.get("terminated")
            if waits:
                self.reason = trouble = waits
            elif ended is not None:
                self.reason = _end(ended)
                if ended.get("exitCode") or ended.get("signal"):
                    trouble = self.reason
            elif container.get("ready") and state.get("running") is not None:
                runs = True
                self.ready += 1
        if self.reason == "Completed" and runs:
            is_ready = (condition(self._pod, "Ready") or {}).get("status") == "True"
            self.reason = "Running" if is_ready else trouble or "NotReady"


def _end(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"
