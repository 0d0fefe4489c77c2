"""Authorization modes: parses ``--authorization-mode`` and builds the chain of authorizers.

``lifecycle/loaded_settings.py`` parses the modes, ``lifecycle/composition.py`` makes the chain. The
authorizers are in ``kube/access`` and ``webhook_authorizer.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from instar.kube.access.authorizers import (
    Abstaining,
    AlwaysAllow,
    Authorizer,
    Authorizers,
    DenyAllAuthorizer,
    Recorder,
)
from instar.kube.access.rbac.authorizer import RbacAuthorizer
from instar.kube.access.rbac.policy import RbacPolicy

RBAC, ALWAYS_ALLOW = "RBAC", "AlwaysAllow"
MODES = (RBAC, ALWAYS_ALLOW, "AlwaysDeny", "Webhook", "Node")


def modes_of(text: str) -> tuple[str, ...]:
    """Parse a text such as ``RBAC,Webhook``. Raises ``ValueError`` for an unknown mode."""
    modes = tuple(part.strip() for part in text.split(","))
    for mode in modes:
        if mode not in MODES:
            raise ValueError(f'authorization "{mode}" is not known; known are {", ".join(MODES)}')
    if len(set(modes)) < len(modes):
        raise ValueError(f'authorization "{text}" names a mode twice')
    return modes


def authorizer_of(
    modes: tuple[str, ...],
    policy: Callable[[], RbacPolicy],
    webhook: Authorizer | None = None,
    recorder: Recorder | None = None,
) -> Authorizers:
    """Return the chain of authorizers for the modes; the recorder counts allowed requests."""
    made: Mapping[str, Callable[[], Authorizer | None]] = {
        RBAC: lambda: RbacAuthorizer(policy),
        ALWAYS_ALLOW: AlwaysAllow,
        "AlwaysDeny": DenyAllAuthorizer,
        "Node": Abstaining,
        "Webhook": lambda: webhook,
    }
    found = [made[mode]() for mode in modes]
    return Authorizers([one for one in found if one is not None], recorder)
