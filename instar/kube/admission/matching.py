"""Which requests a configuration means: rules, match policy, selectors.

Labels are given, not looked up: whose they are, and what it costs to know them, is the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.kube.admission.match_rules import (
    AdmissionRule,
    MatchedRequest,
    RequestEndpoint,
    read_rule,
)
from instar.kube.api.label_selector import selector_of
from instar.kube.api.selectors import LabelSelector


@dataclass(frozen=True, slots=True)
class Criteria:
    rules: tuple[AdmissionRule, ...]
    excluded: tuple[AdmissionRule, ...] = ()
    exact: bool = False
    """``matchPolicy: Exact``: the version of the request must be meant."""
    namespaces: LabelSelector | None = None
    """None is every namespace."""
    objects: LabelSelector | None = None
    """None is every object."""
    unruled: bool = False
    """Whether having no rules means everything (a policy's binding) and not nothing."""

    def endpoint(self, asked: MatchedRequest) -> RequestEndpoint | None:
        """At which version the configuration wants to see the request; None when it does not."""
        if self.excluded and self._matched(self.excluded, asked) is not None:
            return None
        if self.unruled and not self.rules:
            return asked.endpoint
        return self._matched(self.rules, asked)

    def _matched(
        self, rules: Sequence[AdmissionRule], asked: MatchedRequest
    ) -> RequestEndpoint | None:
        """A rule that names the request's own version comes before any that asks to convert."""
        own = asked.endpoint
        for rule in rules:
            if rule.matches(asked, own):
                return own
        if self.exact:
            return None
        for rule in rules:
            for endpoint in asked.equivalents:
                if endpoint != asked.endpoint and rule.matches(asked, endpoint):
                    return endpoint
        return None

    def takes_object(self, *labels: Mapping[str, str] | None) -> bool:
        """Of the new object and the old: either is enough; what is not there never matches."""
        selector = self.objects
        if selector is None:
            return True
        return any(found is not None and selector.matches(found) for found in labels)


def read_criteria(obj: Mapping[str, Any]) -> Criteria:
    """Of a webhook."""
    return _read(obj, "rules")


def read_match_resources(obj: Mapping[str, Any], *, unruled: bool = False) -> Criteria:
    """Of a policy's ``matchConstraints`` or a binding's ``matchResources``."""
    return _read(obj, "resourceRules", "excludeResourceRules", unruled=unruled)


def _read(
    obj: Mapping[str, Any], rules: str, excluded: str = "", *, unruled: bool = False
) -> Criteria:
    return Criteria(
        rules=tuple(map(read_rule, obj.get(rules) or ())),
        excluded=tuple(map(read_rule, obj.get(excluded) or ())) if excluded else (),
        exact=obj.get("matchPolicy") == "Exact",
        namespaces=_selector(obj.get("namespaceSelector")),
        objects=_selector(obj.get("objectSelector")),
        unruled=unruled,
    )


def _selector(obj: Any) -> LabelSelector | None:
    found = selector_of(obj)
    return found if found is not None and found.requirements else None
