"""Validates Jobs and CronJobs: specs, statuses and allowed changes.

Called by ``server/registry/kinds/workloads/jobs.py``.
"""

from __future__ import annotations

from zoneinfo import available_timezones

from instar.base.field_errors import (
    OMITTED,
    FieldError,
    child,
    index,
    invalid,
    not_supported,
    required,
    too_long,
)
from instar.base.json_values import Object, copy_json
from instar.kube.api.string_rules import dns1123_label, dns1123_subdomain, path_segment_name
from instar.kube.builtin_rules.basics import (
    IMMUTABLE,
    choice_errors,
    count_errors,
    immutable_errors,
)
from instar.kube.builtin_rules.cron import schedule_problem
from instar.kube.builtin_rules.go_internal_text import internal, internal_template
from instar.kube.builtin_rules.pods.pod_spec import template_errors
from instar.kube.builtin_rules.selectors import (
    in_go_order,
    is_convertible,
    label_errors,
    selector_errors,
)

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_UID_LABELS = (CONTROLLER_UID, "controller-uid")
_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_ENDING = ("OnFailure", "Never")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_LONGEST_CRON = 52
_DOMAIN_PATH = 'must be a domain-prefixed path (such as "acme.io/foo")'
_SCHEDULING = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
_MANY_COMPLETIONS, _MANY_AT_ONCE = 100_000, 10_000
_TOO_MANY = (
    f"must be less than or equal to {_MANY_AT_ONCE} when completions are above "
    f"{_MANY_COMPLETIONS} and used with backoff limit per index"
)


def cron_name(name: str, prefix: bool) -> list[str]:
    """Check the name, to which the names of its Jobs add eleven characters."""
    if len(name) > _LONGEST_CRON:
        return [f"must be no more than {_LONGEST_CRON} characters"]
    return dns1123_subdomain(f"{name[:-1]}a" if prefix and name.endswith("-") else name)


def job_errors(job: Object) -> list[FieldError]:
    found = _generated_selector_errors(job) + _selected_spec_errors(job["spec"])
    return found + _index_name_errors(job)


def _index_name_errors(job: Object) -> list[FieldError]:
    """Check the hostname of the last pod of an indexed job."""
    spec, name = job["spec"], job["metadata"].get("name", "")
    last = (spec.get("completions") or 0) - 1
    host = f"{name}-{last}"
    if spec.get("completionMode") != "Indexed" or last < 0 or not dns1123_label(host):
        return []
    text = f"will not able to create pod with invalid DNS label: {host}"
    return [invalid("metadata.name", name, text)]


def _selected_spec_errors(spec: Object) -> list[FieldError]:
    found = job_spec_errors(spec, "spec")
    selector = spec.get("selector")
    if selector is None:
        found.append(required("spec.selector"))
    else:
        found += selector_errors(selector, "spec.selector")
    if selector is None or is_convertible(selector):
        labels = (spec["template"].get("metadata") or {}).get("labels")
        found += label_errors(selector, labels, "spec.template")
    return found


def _generated_selector_errors(job: Object) -> list[FieldError]:
    """Check the selector that the server generates if the client sets none. Upstream reports no
    error here for a missing selector."""
    spec, metadata = job["spec"], job["metadata"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    labels = {**dict.fromkeys(_UID_LABELS, uid), **dict.fromkeys(_NAME_LABELS, name)}
    wanted = selector.get("matchLabels") or {}
    if not selector.get("matchExpressions") and wanted.items() <= labels.items():
        return []
    return [invalid("spec.selector", in_go_order(selector), "`selector` not auto-generated")]


def job_spec_errors(spec: Object, path: str) -> list[FieldError]:
    """Check the spec of a Job or of a CronJob's template."""
    found = count_errors(
        spec,
        path,
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    )
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(
            required(child(path, "backoffLimitPerIndex"), "when maxFailedIndexes is specified")
        )
    found += _manager_errors(spec.get("managedBy"), child(path, "managedBy"))
    found += _mode_errors(spec, path)
    policy = spec.get("podFailurePolicy")
    if policy is not None:
        found += _failure_policy_errors(policy, child(path, "podFailurePolicy"))
    found += _replacement_errors(spec, child(path, "podReplacementPolicy"))
    template = spec.get("template") or {}
    found += template_errors(template, child(path, "template"))
    restart = (template.get("spec") or {}).get("restartPolicy", "")
    where = f"{path}.template.spec.restartPolicy"
    if restart not in _ENDING:
        found.append(required(where, 'valid values: "OnFailure", "Never"'))
    elif policy is not None and restart != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        found.append(invalid(where, restart, text))
    return found


def _manager_errors(manager: str | None, path: str) -> list[FieldError]:
    if manager is None:
        return []
    domain, slash, rest = manager.partition("/")
    found: list[FieldError] = []
    if not slash or not domain or not rest:
        found.append(invalid(path, manager, _DOMAIN_PATH))
    else:
        found += [invalid(path, domain, text) for text in dns1123_subdomain(domain)]
        found += [invalid(path, rest, text) for text in path_segment_name(rest)]
    if len(manager) > 63:
        found.append(too_long(path, 63))
    return found


def _mode_errors(spec: Object, path: str) -> list[FieldError]:
    mode = spec.get("completionMode")
    found: list[FieldError] = []
    if mode is not None:
        found += choice_errors(mode, child(path, "completionMode"), ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        return found + _index_errors(spec, path)
    if mode is None or mode == "NonIndexed":
        found += [
            invalid(child(path, name), spec[name], "requires indexed completion mode")
            for name in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(name) is not None
        ]
    return found


def _index_errors(spec: Object, path: str) -> list[FieldError]:
    """Limit what the status of an indexed job has to keep."""
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    where, found = child(path, "maxFailedIndexes"), list[FieldError]()
    if completions is None:
        found.append(required(child(path, "completions"), "when completion mode is Indexed"))
    if (spec.get("parallelism") or 0) > _MANY_COMPLETIONS:
        text = f"must be less than or equal to {_MANY_COMPLETIONS} when completion mode is Indexed"
        found.append(invalid(child(path, "parallelism"), spec["parallelism"], text))
    if failed is not None and completions is not None and failed > completions:
        found.append(invalid(where, failed, "must be less than or equal to completions"))
    if failed is not None and failed > _MANY_COMPLETIONS:
        text = f"must be less than or equal to {_MANY_COMPLETIONS}"
        found.append(invalid(where, failed, text))
    many = (completions or 0) > _MANY_COMPLETIONS
    if not many or spec.get("backoffLimitPerIndex") is None:
        return found
    if failed is None:
        text = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        found.append(required(where, text))
    return found + [
        invalid(child(path, name), spec[name], _TOO_MANY)
        for name in ("parallelism", "maxFailedIndexes")
        if (spec.get(name) or 0) > _MANY_AT_ONCE
    ]


def _replacement_errors(spec: Object, path: str) -> list[FieldError]:
    value = spec.get("podReplacementPolicy")
    if value is None:
        return []
    allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    return choice_errors(value, path, allowed)


def _failure_policy_errors(policy: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, rule in enumerate(policy.get("rules") or ()):
        where = index(child(path, "rules"), position)
        action = rule.get("action", "")
        if not action:
            found.append(required(child(where, "action"), _valid_values_text(_ACTIONS)))
        elif action not in _ACTIONS:
            found.append(not_supported(child(where, "action"), action, _ACTIONS))
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            found += _exit_code_errors(codes, child(where, "onExitCodes"))
        if codes is not None and conditions:
            text = "specifying both OnExitCodes and OnPodConditions is not supported"
            found.append(invalid(where, OMITTED, text))
        if codes is None and not conditions:
            text = "specifying one of OnExitCodes and OnPodConditions is required"
            found.append(invalid(where, OMITTED, text))
    return found


def _valid_values_text(choices: tuple[str, ...]) -> str:
    return "valid values: " + ", ".join(f'"{choice}"' for choice in choices)


def _exit_code_errors(codes: Object, path: str) -> list[FieldError]:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    found = choice_errors(operator, child(path, "operator"), ("In", "NotIn"))
    where = child(path, "values")
    if not values:
        found.append(invalid(where, values, "at least one value is required"))
    for position, value in enumerate(values):
        if operator == "In" and value == 0:
            found.append(invalid(index(where, position), 0, "must not be 0 for the In operator"))
    return found


def job_change_errors(new: Object, old: Object) -> list[FieldError]:
    """Check an update of a Job."""
    spec, former = new["spec"], old["spec"]
    # Upstream validates the spec once as a Job's and once as a changed Job's, and reports both.
    found = [*_selected_spec_errors(spec), *_completion_errors(spec, former)]
    selector = spec.get("selector")
    found += immutable_errors(
        selector, former.get("selector"), "spec.selector", in_go_order(selector)
    )
    found += _template_change_errors(spec, former, old)
    for name in (
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ):
        shown = spec.get(name)
        if name == "podFailurePolicy" and shown is not None:
            shown = internal("batch/v1#PodFailurePolicy", {"rules": [], **shown})
        if spec.get(name) != former.get(name):
            found.append(invalid(f"spec.{name}", shown, IMMUTABLE))
    return found


def _completion_errors(spec: Object, former: Object) -> list[FieldError]:
    """Check completions: those of an indexed Job may change together with its parallelism."""
    wanted, present = spec.get("completions"), former.get("completions")
    if wanted == present:
        return []
    where = "spec.completions"
    if spec.get("completionMode") != "Indexed" or wanted is None:
        return [invalid(where, wanted, IMMUTABLE)]
    if wanted != spec.get("parallelism"):
        text = "can only be modified in tandem with parallelism"
        return [invalid(where, wanted, text)]
    return []


def _template_change_errors(spec: Object, former: Object, old: Object) -> list[FieldError]:
    if spec["template"] == former["template"]:
        return []
    munged = copy_json(spec["template"])
    waits = former.get("suspend") and "startTime" not in (old.get("status") or {})
    if waits:
        for name in ("annotations", "labels"):
            _restore_member(
                munged.setdefault("metadata", {}), former["template"].get("metadata") or {}, name
            )
        for name in _SCHEDULING:
            _restore_member(munged["spec"], former["template"]["spec"], name)
        if not munged["metadata"] and "metadata" not in former["template"]:
            del munged["metadata"]
    if munged == former["template"]:
        return []
    return [invalid("spec.template", internal_template(munged), IMMUTABLE)]


def _restore_member(new: Object, old: Object, name: str) -> None:
    new.pop(name, None)
    if name in old:
        new[name] = old[name]


def job_status_errors(new: Object) -> list[FieldError]:
    status = new.get("status") or {}
    found = count_errors(status, "status", "active", "succeeded", "failed", "ready", "terminating")
    done = {
        one.get("type") for one in status.get("conditions") or () if one.get("status") == "True"
    }
    ended = status.get("completionTime")
    if "Complete" in done and ended is None:
        text = "completionTime is required for Complete jobs"
        found.append(required("status.completionTime", text))
    if ended is not None and "Complete" not in done:
        text = "cannot set completionTime when there is no Complete=True condition"
        found.append(invalid("status.completionTime", ended, text))
    for last, first in (("Complete", "SuccessCriteriaMet"), ("Failed", "FailureTarget")):
        if last in done and first not in done:
            text = f"cannot set {last}=True condition without the {first}=true condition"
            found.append(invalid("status.conditions", OMITTED, text))
    if {"Complete", "Failed"} <= done:
        text = "cannot set Complete=True and Failed=true conditions"
        found.append(invalid("status.conditions", OMITTED, text))
    if done & {"Complete", "Failed"} and status.get("startTime") is None:
        found.append(required("status.startTime", "startTime is required for finished job"))
    return found


def cron_job_errors(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if not schedule:
        found.append(required("spec.schedule"))
    else:
        problem = schedule_problem(schedule)
        if "TZ" in schedule:
            problem = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        if problem:
            found.append(invalid("spec.schedule", schedule, problem))
    found += _zone_errors(zone, "spec.timeZone")
    found += count_errors(spec, "spec", "startingDeadlineSeconds")
    policies = ("Allow", "Forbid", "Replace")
    found += choice_errors(spec.get("concurrencyPolicy", ""), "spec.concurrencyPolicy", policies)
    found += count_errors(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    found += job_spec_errors(job, "spec.jobTemplate.spec")
    if job.get("manualSelector"):
        where = "spec.jobTemplate.spec.manualSelector"
        found.append(not_supported(where, True, ("nil", "false")))
    return found


def _zone_errors(zone: str | None, path: str) -> list[FieldError]:
    if zone is None:
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        return [
            invalid(
                path, zone, "timeZone must be an explicit time zone as defined in the TZ database"
            )
        ]
    if zone not in available_timezones() and zone != "UTC":
        return [invalid(path, zone, f"unknown time zone {zone}")]
    return []
