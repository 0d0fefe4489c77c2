"""Policy of a namespace: which level and version is enforced, audited and warned about.

The PodSecurity plugin reads a namespace's labels with it. A label that cannot be read counts as
the strictest level for enforcement and as none for audit and warnings, as upstream does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from instar.base.field_errors import FieldError, invalid, key

PREFIX = "pod-security.kubernetes.io/"
_LABELS = "metadata.labels"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
LATEST = -1
"""The minor version of ``latest``, which follows the server."""


class PodSecurityLevel(StrEnum):
    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"

    @property
    def strictness(self) -> int:
        return list(PodSecurityLevel).index(self)


class LevelVersion(NamedTuple):
    """A level of the Pod Security Standards at a Kubernetes release."""

    level: PodSecurityLevel
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


_PRIVILEGED = LevelVersion(PodSecurityLevel.PRIVILEGED)


class PodSecurityPolicy(NamedTuple):
    """One level and version for each mode."""

    enforce: LevelVersion = _PRIVILEGED
    audit: LevelVersion = _PRIVILEGED
    warn: LevelVersion = _PRIVILEGED

    @property
    def is_privileged(self) -> bool:
        return all(mode.level is PodSecurityLevel.PRIVILEGED for mode in self)


def read_policy(
    labels: Mapping[str, str], defaults: PodSecurityPolicy
) -> tuple[PodSecurityPolicy, list[FieldError]]:
    """Return the policy of labels and defaults, and the errors of the labels."""
    errors: list[FieldError] = []
    modes = {
        mode: _read_mode(labels, mode, getattr(defaults, mode), errors)
        for mode in PodSecurityPolicy._fields
    }
    enforced = labels.get(PREFIX + "enforce")
    follows = PREFIX + "warn" not in labels and enforced in list(PodSecurityLevel)
    if follows and modes["enforce"].level.strictness > modes["warn"].level.strictness:
        minor = modes["warn"].minor if PREFIX + "warn-version" in labels else modes["enforce"].minor
        modes["warn"] = LevelVersion(modes["enforce"].level, minor)
    return PodSecurityPolicy(**modes), errors


def _read_mode(
    labels: Mapping[str, str], mode: str, default: LevelVersion, errors: list[FieldError]
) -> LevelVersion:
    level, minor = default
    name = PREFIX + mode
    if name in labels:
        try:
            level = read_level(labels[name])
        except ValueError as error:
            errors.append(invalid(key(_LABELS, name), labels[name], str(error)))
            enforced = mode == "enforce"
            level = PodSecurityLevel.RESTRICTED if enforced else PodSecurityLevel.PRIVILEGED
    name += "-version"
    if name in labels:
        try:
            minor = read_version(labels[name])
        except ValueError as error:
            errors.append(invalid(key(_LABELS, name), labels[name], str(error)))
            minor = LATEST
    return LevelVersion(level, minor)


def read_level(text: str) -> PodSecurityLevel:
    """Return the level; raises ``ValueError`` with upstream's text."""
    if text not in list(PodSecurityLevel):
        raise ValueError("must be one of privileged, baseline, restricted")
    return PodSecurityLevel(text)


def read_version(text: str) -> int:
    """Return the minor version, or ``LATEST``; raises ``ValueError`` with upstream's text."""
    if text == "latest":
        return LATEST
    match = _VERSION.fullmatch(text)
    if match is None or len(match[1]) > 18:
        raise ValueError('must be "latest" or "v1.x"')
    return int(match[1])
