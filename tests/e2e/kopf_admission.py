"""An operator with admission handlers, as its author would write it: kopf makes the configurations
and serves them itself.

kopf run --all-namespaces tests/e2e/kopf_admission.py
"""

from __future__ import annotations

import os
from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.admission.managed = "auto.kopf.dev"
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        host="127.0.0.1",
        certfile=os.environ["HOOK_CERT"],
        pkeyfile=os.environ["HOOK_KEY"],
    )


@kopf.on.validate("kopf.example.com", "v1", "widgets")
def no_blue(spec: Any, warnings: list[str], **_: Any) -> None:
    warnings.append("judged by kopf")
    if spec.get("color") == "blue":
        raise kopf.AdmissionError("blue is not allowed", code=418)


@kopf.on.mutate("kopf.example.com", "v1", "widgets")
def at_least_one(spec: Any, patch: kopf.Patch, **_: Any) -> None:
    if not spec.get("replicas"):
        patch.spec["replicas"] = 1


@kopf.on.create("kopf.example.com", "v1", "widgets")
def created(patch: kopf.Patch, **_: Any) -> None:
    """Admission needs a resource that is watched."""
    patch.status["phase"] = "Created"
