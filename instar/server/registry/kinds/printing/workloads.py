"""Table cells of Deployments, the set kinds, ControllerRevisions, Jobs and CronJobs.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.texts import (
    NONE,
    age_of,
    condition,
    containers_of,
    is_terminating,
    labels_text,
    name_of,
    part,
    selector_cell,
    since,
)
from instar.server.registry.resources.columns import human_duration


def _template(obj: Object) -> Object:
    found: Object = part(obj, "spec", "template")
    return found


def _selector(obj: Object) -> str:
    return selector_cell(part(obj, "spec").get("selector"))


def replicas(obj: Object, now: datetime) -> list[Any]:
    """Return the cells common to replica kinds, without the selector, which has two forms."""
    status = part(obj, "status")
    return [
        name_of(obj),
        part(obj, "spec").get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age_of(obj, now),
        *containers_of(_template(obj)),
    ]


def _replica_set(obj: Object, now: datetime) -> list[Any]:
    return [*replicas(obj, now), _selector(obj)]


def _ready(obj: Object) -> str:
    wanted = part(obj, "spec").get("replicas", 0)
    return f"{part(obj, 'status').get('readyReplicas', 0)}/{wanted}"


def _deployment(obj: Object, now: datetime) -> list[Any]:
    status = part(obj, "status")
    return [
        name_of(obj),
        _ready(obj),
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age_of(obj, now),
        *containers_of(_template(obj)),
        _selector(obj),
    ]


def _stateful_set(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), _ready(obj), age_of(obj, now), *containers_of(_template(obj))]


def _daemon_set(obj: Object, now: datetime) -> list[Any]:
    status = part(obj, "status")
    return [
        name_of(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        labels_text(part(_template(obj), "spec").get("nodeSelector")),
        age_of(obj, now),
        *containers_of(_template(obj)),
        _selector(obj),
    ]


def _revision(obj: Object, now: datetime) -> list[Any]:
    owners = part(obj, "metadata").get("ownerReferences") or ()
    owner: Object = next((one for one in owners if one.get("controller")), {})
    shown = NONE
    if owner:
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        kind = str(owner.get("kind", "")).lower()
        shown = f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return [name_of(obj), shown, obj.get("revision", 0), age_of(obj, now)]


def _job(obj: Object, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        _job_state(obj),
        _completions(obj),
        _duration(part(obj, "status"), now),
        age_of(obj, now),
        *containers_of(_template(obj)),
        _selector(obj),
    ]


def _job_state(obj: Object) -> str:
    def holds(type: str) -> bool:
        return (condition(obj, type) or {}).get("status") == "True"

    for type in ("Complete", "Failed"):
        if holds(type):
            return type
    if is_terminating(obj):
        return "Terminating"
    later = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((type for type in later if holds(type)), "Running")


def _completions(obj: Object) -> str:
    spec, done = part(obj, "spec"), part(obj, "status").get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(status: Object, now: datetime) -> str:
    begun, ended = status.get("startTime"), status.get("completionTime")
    if not begun:
        return ""
    until = datetime.fromisoformat(ended) if ended else now
    return human_duration(max(0, int((until - datetime.fromisoformat(begun)).total_seconds())))


def _cron_job(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    job = part(spec, "jobTemplate", "spec")
    last = status.get("lastScheduleTime")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age_of(obj, now),
        *containers_of(part(job, "template")),
        selector_cell(job.get("selector")),
    ]


CELLS: Mapping[str, Cells] = {
    "controllerrevisions": _revision,
    "cronjobs": _cron_job,
    "daemonsets": _daemon_set,
    "deployments": _deployment,
    "jobs": _job,
    "replicasets": _replica_set,
    "statefulsets": _stateful_set,
}
