"""Project configuration of the reviewer: severities, suppressions and baseline. Pure.

``instar review`` reads it through ``sources.py``. A suppression names its reason, its owner and its
last day; after that day the suppression itself is an error, and the findings that it hid are
reported again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.tools.reviewer.engine import severity_map
from instar.tools.reviewer.report import CrdReview, Finding, Report, Severity, sort_findings
from instar.tools.reviewer.rules import BY_ID

FILES = ("instar.toml", ".instar.yaml", ".instar.yml", "pyproject.toml")
"""File names, looked for in this order in the working directory and the folders above it."""

_KEYS = {"fail-on", "severity", "suppress", "baseline"}
_SUPPRESS_KEYS = {"rule", "crd", "version", "path", "reason", "owner", "expires"}
_FAIL_ON = {"error": Severity.ERROR, "warning": Severity.WARNING, "none": None}


class ConfigError(ValueError):
    """The configuration cannot be used; ``str()`` says which entry and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """Hides findings; every pattern is a glob."""

    rule: str
    reason: str
    owner: str
    expires: date
    crd: str = "*"
    version: str = "*"
    path: str = "*"

    def matches(self, finding: Finding) -> bool:
        return (
            fnmatchcase(finding.rule, self.rule)
            and fnmatchcase(finding.crd, self.crd)
            and fnmatchcase(finding.version, self.version)
            and (fnmatchcase(finding.path, self.path) or finding.path == self.path)
        )

    @property
    def key(self) -> str:
        """Return the identity of the suppression, which does not depend on its texts."""
        return " ".join((self.rule, self.crd, self.version, self.path))

    def label(self) -> str:
        return f"{self.rule} in {self.crd}" + (f" at {self.path}" if self.path != "*" else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of a review, from its configuration file."""

    severities: Mapping[str, Severity] = field(default_factory=dict)
    suppressions: tuple[Suppression, ...] = ()
    fail_on: Severity | None = Severity.ERROR
    baseline: str = ""
    file: str = ""


def section(file: str, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reviewer's section of a configuration file; None if it has none."""
    if file.endswith("pyproject.toml"):
        document = (document.get("tool") or {}).get("instar") or {}
    found = document.get("review")
    return found if isinstance(found, Mapping) else None


def parse(raw: Mapping[str, Any], file: str = "") -> Config:
    """Read the settings of a review. Raises ``ConfigError``."""
    unknown = sorted(set(raw) - _KEYS)
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]!r}; there is {', '.join(sorted(_KEYS))}")
    try:
        severities = severity_map(raw.get("severity") or {})
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return Config(
        severities=severities,
        suppressions=tuple(_suppression(item) for item in raw.get("suppress") or ()),
        fail_on=fail_on(str(raw.get("fail-on") or "error")),
        baseline=str(raw.get("baseline") or ""),
        file=file,
    )


def fail_on(text: str) -> Severity | None:
    """Return the severity from which a review fails; None for never. Raises ``ConfigError``."""
    if text not in _FAIL_ON:
        raise ConfigError(f"fail-on: {text!r} is none of {', '.join(_FAIL_ON)}")
    return _FAIL_ON[text]


def _suppression(raw: Mapping[str, Any]) -> Suppression:
    missing = [name for name in ("rule", "reason", "owner", "expires") if not raw.get(name)]
    if missing:
        raise ConfigError(f"a suppression of {raw.get('rule', '?')} has no {missing[0]}")
    unknown = sorted(set(raw) - _SUPPRESS_KEYS)
    if unknown:
        raise ConfigError(f"a suppression of {raw['rule']} has an unknown key {unknown[0]!r}")
    rule = str(raw["rule"])
    if not any(fnmatchcase(name, rule) for name in BY_ID):
        raise ConfigError(f"suppress: there is no rule named {rule!r}")
    try:
        expires = date.fromisoformat(str(raw["expires"]))
    except ValueError:
        raise ConfigError(f"a suppression of {rule} expires on no date: {raw['expires']}") from None
    texts = {name: str(raw[name]) for name in ("crd", "version", "path") if name in raw}
    return Suppression(
        rule=rule, reason=str(raw["reason"]), owner=str(raw["owner"]), expires=expires, **texts
    )


def read_baseline(text: str) -> frozenset[str]:
    """Return the fingerprints of a baseline file; raises ``ConfigError``."""
    try:
        found = json.loads(text)["findings"]
        return frozenset(item["fingerprint"] for item in found)
    except (ValueError, KeyError, TypeError):
        raise ConfigError("not a baseline written by instar review") from None


def write_baseline(report: Report) -> str:
    """Return the findings of a report as the text of a baseline file."""
    found = [
        {
            "fingerprint": item.fingerprint,
            "rule": item.rule,
            "crd": item.crd,
            "version": item.version,
            "path": item.path,
        }
        for item in report.findings
    ]
    found.sort(key=lambda item: tuple(item.values()))
    return json.dumps({"findings": found}, indent=2) + "\n"


def decide(report: Report, config: Config, baseline: Iterable[str], today: date) -> Report:
    """Apply suppressions and baseline; expired suppressions become findings."""
    known = frozenset(baseline)
    live = [item for item in config.suppressions if item.expires >= today]
    used: set[Suppression] = set()
    crds = tuple(_decided(crd, live, known, used) for crd in report.crds)
    extra = [*_expired(config, today), *(_unused(item) for item in live if item not in used)]
    if extra:
        crds = (
            *crds,
            CrdReview(name=config.file or "configuration", findings=sort_findings(extra)),
        )
    return replace(report, crds=crds)


def _decided(
    crd: CrdReview, live: Sequence[Suppression], known: frozenset[str], used: set[Suppression]
) -> CrdReview:
    shown, hidden = [], list(crd.suppressed)
    for finding in crd.findings:
        match = next((item for item in live if item.matches(finding)), None)
        if match is not None:
            used.add(match)
            hidden.append(replace(finding, suppressed=f"{match.reason} ({match.owner})"))
        elif finding.fingerprint in known:
            hidden.append(replace(finding, suppressed="in the baseline"))
        else:
            shown.append(finding)
    return replace(crd, findings=tuple(shown), suppressed=tuple(hidden))


def _expired(config: Config, today: date) -> list[Finding]:
    return [
        Finding(
            rule="suppression-expired",
            severity=Severity.ERROR,
            crd=item.crd,
            key=item.key,
            file=config.file,
            message=f"the suppression of {item.label()} expired on {item.expires}; "
            f"{item.owner} decides: {item.reason}",
        )
        for item in config.suppressions
        if item.expires < today
    ]


def _unused(item: Suppression) -> Finding:
    return Finding(
        rule="suppression-unused",
        severity=Severity.INFO,
        crd=item.crd,
        key=item.key,
        message=f"the suppression of {item.label()} hides nothing",
    )
