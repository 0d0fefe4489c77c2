"""Tells whether any ``--oidc-…`` flag is given.

``instar serve`` (``cli/serving/authentication_flags.py``) calls it at every start. It is a separate
module, so that this check does not import the rest of the package.
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
    """Return whether one of the ``--oidc-…`` flags is set."""
    return any(value != _DEFAULTS.get(name, "") for name, value in flags.items())
