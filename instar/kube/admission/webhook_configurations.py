"""Webhook configurations parsed into ``WebhookConfiguration`` values, one per webhook.

Called by ``server/registry/admission/webhooks/configured.py`` when a stored configuration changes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.admission.match_conditions import Conditions, read_conditions
from instar.kube.admission.matching import Criteria, read_criteria
from instar.kube.api.admission_review import preferred_version
from instar.kube.api.crd import ServiceReference, WebhookClient

GROUP = "admissionregistration.k8s.io"
MUTATING = "mutatingwebhookconfigurations"
VALIDATING = "validatingwebhookconfigurations"
EXEMPT = frozenset(
    {
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        MUTATING,
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        VALIDATING,
    }
)
"""Kinds that are exempt from webhooks, because a broken webhook could otherwise not be removed."""


@dataclass(frozen=True, slots=True)
class WebhookConfiguration:
    """One webhook of a configuration, read from its JSON."""

    configuration: str
    name: str
    client: WebhookClient
    criteria: Criteria
    conditions: Conditions
    ignores_failures: bool
    seconds: float
    version: str | None
    """Version of the AdmissionReview; None if the webhook lists no supported one."""
    dry_runs: bool
    """Whether the webhook may be called for dry runs."""
    reinvoked: bool = False
    """Whether it is called again after later webhooks changed the object."""
    blank_bundle: bool = False
    """Whether the caBundle is only white space, which is an error here."""


def read_configuration(obj: Mapping[str, Any]) -> tuple[WebhookConfiguration, ...]:
    name = str((obj.get("metadata") or {}).get("name", ""))
    return tuple(_webhook(name, item) for item in obj.get("webhooks") or ())


def _webhook(configuration: str, obj: Object) -> WebhookConfiguration:
    config = obj.get("clientConfig") or {}
    return WebhookConfiguration(
        configuration=configuration,
        name=str(obj.get("name", "")),
        client=_client(config),
        criteria=read_criteria(obj),
        conditions=read_conditions(obj.get("matchConditions"), params=False),
        ignores_failures=obj.get("failurePolicy") == "Ignore",
        seconds=float(obj.get("timeoutSeconds") or 10),
        version=preferred_version(obj.get("admissionReviewVersions") or ()),
        dry_runs=obj.get("sideEffects") in ("None", "NoneOnDryRun"),
        reinvoked=obj.get("reinvocationPolicy") == "IfNeeded",
        blank_bundle=_is_blank(config.get("caBundle") or ""),
    )


def _client(config: Object) -> WebhookClient:
    bundle, service = str(config.get("caBundle") or ""), config.get("service")
    if service is None:
        return WebhookClient(str(config.get("url") or ""), None, bundle)
    reference = ServiceReference(
        str(service.get("namespace", "")),
        str(service.get("name", "")),
        str(service.get("path") or ""),
        int(service.get("port") or 443),
    )
    return WebhookClient(None, reference, bundle)


def _is_blank(bundle: str) -> bool:
    try:
        return bool(bundle) and not base64.b64decode(bundle).strip()
    except (binascii.Error, ValueError):
        return False
