"""Strategies of webhook configurations and admission policies as stored objects.

The verbs find them through ``strategy_table.py``. ``server/registry/admission`` applies the stored
configurations and policies to requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.admission import webhook_errors
from instar.kube.builtin_rules.policies import binding_errors, policy_errors
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


_RESERVED_SUFFIX = ".static.k8s.io"


class _RegistrationStrategy(BuiltinStrategy):
    """Behaviour common to all six kinds."""

    counts_generation = True
    unconditional_update = False

    def advise(self, obj: Object, old: Object | None, version: VersionServing) -> list[str]:
        if old is not None or not obj["metadata"].get("name", "").endswith(_RESERVED_SUFFIX):
            return []
        return [
            f'metadata.name: names ending with "{_RESERVED_SUFFIX}" are reserved for static '
            "manifest-based configurations and cannot be managed via the API"
        ]


class WebhookConfigurationStrategy(_RegistrationStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        for webhook in obj.get("webhooks") or ():
            webhook.setdefault("failurePolicy", "Fail")
            webhook.setdefault("timeoutSeconds", 10)
            if version.kind == "MutatingWebhookConfiguration":
                webhook.setdefault("reinvocationPolicy", "Never")
            service = (webhook.get("clientConfig") or {}).get("service")
            if service is not None:
                service.setdefault("port", 443)
            _default_match(webhook)

    def is_new_generation(self, new: Object, old: Object) -> bool:
        return bool(new.get("webhooks") != old.get("webhooks"))

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return webhook_errors(obj, mutating=version.kind == "MutatingWebhookConfiguration")


class PolicyStrategy(_RegistrationStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        if spec.get("matchConstraints") is not None:
            _default_match(spec["matchConstraints"])

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return policy_errors(obj, mutating=version.kind == "MutatingAdmissionPolicy")


class PolicyBindingStrategy(_RegistrationStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        if obj["spec"].get("matchResources") is not None:
            _default_match(obj["spec"]["matchResources"])

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return binding_errors(obj, mutating=version.kind == "MutatingAdmissionPolicyBinding")


def _default_match(match: Object) -> None:
    """Default the match criteria, which all kinds share."""
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for name in ("rules", "resourceRules", "excludeResourceRules"):
        for rule in match.get(name) or ():
            rule.setdefault("scope", "*")
