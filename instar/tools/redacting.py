"""Redacts values of fields whose name suggests a secret. Pure.

Called by the reports of ``migrate``, ``upgrade`` and ``rehearse``. A schema does not mark secrets,
so the last name in a field's path decides whether its value is redacted. Names of Secrets
(``secretName``, ``secretRef``) are references and are shown.
"""

from __future__ import annotations

from typing import Any

SHOWN = "(redacted)"
"""Text that reports show in place of a hidden value."""
_ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "credential",
    "credentials",
    "bearer",
)
_DEEPEST = 40
_WHOLE = "kubectl.kubernetes.io/last-applied-configuration"


def is_secret(name: str) -> bool:
    plain = name.lower().replace("-", "").replace("_", "").replace(".", "")
    return name == _WHOLE or plain.endswith(_ENDINGS)


def last_name(path: str) -> str:
    """Return the part of ``spec.users[0].password`` that names the value."""
    return path.rpartition(".")[2].partition("[")[0]


def redact(value: Any, depth: int = 0) -> Any:
    """Return a copy without secret values and of limited depth. A mapping below a secret name is a
    reference to the secret and is kept.
    """
    if depth > _DEEPEST and isinstance(value, dict | list):
        return "…"
    if isinstance(value, dict):
        return {
            name: SHOWN
            if is_secret(str(name)) and not isinstance(item, dict)
            else redact(item, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [redact(item, depth + 1) for item in value]
    return value
