"""Strategies of Job and CronJob.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.field_errors import FieldError
from instar.base.json_values import Object
from instar.kube.builtin_rules import jobs as checks
from instar.server.registry.kinds.builtin import BuiltinStrategy
from instar.server.registry.kinds.workloads.podspec_defaults import default_pod_spec
from instar.server.registry.kinds.workloads.sets import TemplateStrategy

if TYPE_CHECKING:
    from instar.server.registry.resources.serving import VersionServing

_JOB_NAME = "batch.kubernetes.io/job-name"
_OWN_LABELS = frozenset({checks.CONTROLLER_UID, _JOB_NAME, "controller-uid", "job-name"})
_NO_LIMIT = 2**31 - 1


class JobStrategy(TemplateStrategy):
    orphan_advice = (
        "child pods are preserved by default when jobs are deleted; set "
        "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
        "this warning"
    )

    def default_spec(self, obj: Object, spec: Object) -> None:
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        per_index = "backoffLimitPerIndex" in spec
        spec.setdefault("backoffLimit", _NO_LIMIT if per_index else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("manualSelector", False)
        policy = spec.get("podFailurePolicy")
        spec.setdefault("podReplacementPolicy", "Failed" if policy else "TerminatingOrFailed")
        for rule in (policy or {}).get("rules") or ():
            for pattern in rule.get("onPodConditions") or ():
                pattern["status"] = pattern.get("status") or "True"
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        spec, metadata = obj["spec"], obj["metadata"]
        if old is not None or spec.get("manualSelector"):
            return
        uid, name = metadata.get("uid", ""), metadata.get("name", "")
        labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
        labels |= {
            "controller-uid": uid,
            "job-name": name,
            checks.CONTROLLER_UID: uid,
            _JOB_NAME: name,
        }
        selector = spec.setdefault("selector", {})
        selector.setdefault("matchLabels", {})[checks.CONTROLLER_UID] = uid
        if _labelled_by_template(metadata.get("labels") or {}, labels):
            metadata["labels"] = dict(sorted(labels.items()))

    def metadata_errors(self, obj: Object, version: VersionServing) -> list[FieldError]:
        """Ignore errors of labels that the server itself made of the name."""
        labels = obj["metadata"].get("labels") or {}
        if set(labels) != _OWN_LABELS:
            return super().metadata_errors(obj, version)
        bare = {name: value for name, value in obj["metadata"].items() if name != "labels"}
        return super().metadata_errors({**obj, "metadata": bare}, version)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return checks.job_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return checks.job_change_errors(new, old)

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        return checks.job_status_errors(new)


def _labelled_by_template(labels: Object, template: Object) -> bool:
    """Return whether all labels came from the template by defaulting."""
    return labels == {n: value for n, value in template.items() if n not in _OWN_LABELS}


class CronJobStrategy(BuiltinStrategy):
    counts_generation = True
    name_rule = staticmethod(checks.cron_name)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return checks.cron_job_errors(obj["spec"])

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        job = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
        template = job.get("template")
        if template is not None:
            default_pod_spec(template.setdefault("spec", {}))
