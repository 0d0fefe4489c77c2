"""Finds out whether mutating admission may change the objects of a CRD on a write.

Called by ``instar migrate`` and ``migration.py`` before the first write. If admission may change
the objects, every rewrite is first sent as a dry run, which costs one more request per object;
otherwise no dry run is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from instar.base.errors import ApiError, NotFound
from instar.base.json_values import Object
from instar.tools.migrator.live_crd import LiveCrd
from instar.wire.client.client import Client

_GROUP = "/apis/admissionregistration.k8s.io"
_WEBHOOKS = f"{_GROUP}/v1/mutatingwebhookconfigurations"
_POLICIES = (
    f"{_GROUP}/v1/mutatingadmissionpolicies",
    f"{_GROUP}/v1beta1/mutatingadmissionpolicies",
    f"{_GROUP}/v1alpha1/mutatingadmissionpolicies",
)


async def may_be_mutated(client: Client, live: LiveCrd) -> bool:
    """Return whether a webhook or policy matches the CRD's resource, or whether that is unknown."""
    try:
        return any([_names(live, rule) async for rule in _rules(client)])
    except ApiError:
        return True


async def _rules(client: Client) -> Any:
    async for page in client.pages(_WEBHOOKS):
        for item in page.get("items") or ():
            for webhook in item.get("webhooks") or ():
                for rule in webhook.get("rules") or ():
                    yield rule
    for path in _POLICIES:
        try:
            async for page in client.pages(path):
                for item in page.get("items") or ():
                    for rule in _policy_rules(item):
                        yield rule
            return
        except NotFound:
            continue


def _policy_rules(policy: Object) -> Iterator[Object]:
    constraints = (policy.get("spec") or {}).get("matchConstraints") or {}
    yield from constraints.get("resourceRules") or ()


def _names(live: LiveCrd, rule: Object) -> bool:
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    operations = rule.get("operations") or ("*",)
    plural = live.crd.names.plural
    wanted = (plural, f"{plural}/*", "*", "*/*")
    return (
        (live.crd.group in groups or "*" in groups)
        and any(name in wanted for name in resources)
        and ("UPDATE" in operations or "*" in operations)
    )
