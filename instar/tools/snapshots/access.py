"""Recognises objects of a captured cluster that grant access, or that make a server send objects to
other addresses.

``loading.py`` leaves them out unless the operator trusts the file (``serve --trust-access``): a
snapshot from an untrusted source must neither grant access to the server nor make it call addresses
that the snapshot chooses.
"""

from __future__ import annotations

from instar.base.json_values import Object

WITHHELD_URL = "https://127.0.0.1:1/withheld-without-trust-access"
"""Replaces the address of a conversion webhook that is left out; nothing listens there."""
_GROUPS = {
    "rbac.authorization.k8s.io": "grants access",
    "admissionregistration.k8s.io": "judges or changes requests, or sends them elsewhere",
    "apiregistration.k8s.io": "serves an API from elsewhere",
    "certificates.k8s.io": "asks for a client certificate",
    "authentication.k8s.io": "is about identities",
    "flowcontrol.apiserver.k8s.io": "decides whose requests wait",
}
_TOKENS = ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")


def opens_access(obj: Object) -> bool:
    """Return whether the object grants access, holds credentials or names an address to call."""
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    if group in _GROUPS:
        return True
    return obj.get("kind") == "Secret" and not group and obj.get("type") in _TOKENS


def without_webhook(crd: Object) -> tuple[Object, bool]:
    """Return the CRD with an unreachable conversion webhook, and whether it had a webhook."""
    conversion = crd["spec"].get("conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return crd, False
    webhook = {**(conversion.get("webhook") or {}), "clientConfig": {"url": WITHHELD_URL}}
    spec = {**crd["spec"], "conversion": {**conversion, "webhook": webhook}}
    return {**crd, "spec": spec}, True
