"""Whether any ``--oidc-…`` flag is given.

A module of its own, as ``instar serve`` checks it at every start without importing the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEFAULTS: Mapping[str, Any] = {
    "username_claim": "sub",
    "signing_algs": "RS256",
    "ca_file": None,
    "required_claim": [],
}


def is_given(flags: Mapping[str, Any]) -> bool:
    return any(value != _DEFAULTS.get(name, "") for name, value in flags.items())
