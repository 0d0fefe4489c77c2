"""Matches requests against a configuration's criteria: rules, match policy, selectors.

Called by the webhook and policy plugins and the reviewer. Callers pass in the labels of objects and
namespaces.
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
    """Which requests a webhook or policy gets: rules, match policy and selectors."""

    rules: tuple[AdmissionRule, ...]
    excluded: tuple[AdmissionRule, ...] = ()
    exact: bool = False
    """``matchPolicy: Exact``: a rule must match the version of the request."""
    namespaces: LabelSelector | None = None
    """None matches every namespace."""
    objects: LabelSelector | None = None
    """None matches every object."""
    unruled: bool = False
    """Whether an empty rule list matches everything (a policy's binding) instead of nothing."""

    def endpoint(self, request: MatchedRequest) -> RequestEndpoint | None:
        """Return the version at which the configuration matches the request; None if it does
        not."""
        if self.excluded and self._matched(self.excluded, request) is not None:
            return None
        if self.unruled and not self.rules:
            return request.endpoint
        return self._matched(self.rules, request)

    def _matched(
        self, rules: Sequence[AdmissionRule], request: MatchedRequest
    ) -> RequestEndpoint | None:
        """Prefer a rule that names the request's own version to one that needs a conversion."""
        own = request.endpoint
        for rule in rules:
            if rule.matches(request, own):
                return own
        if self.exact:
            return None
        for rule in rules:
            for endpoint in request.equivalents:
                if endpoint != request.endpoint and rule.matches(request, endpoint):
                    return endpoint
        return None

    def takes_object(self, *labels: Mapping[str, str] | None) -> bool:
        """Return whether the selector matches the new or the old object; an absent object never
        matches."""
        selector = self.objects
        if selector is None:
            return True
        return any(found is not None and selector.matches(found) for found in labels)


def read_criteria(obj: Mapping[str, Any]) -> Criteria:
    """Parse the criteria of a webhook."""
    return _read(obj, "rules")


def read_match_resources(obj: Mapping[str, Any], *, unruled: bool = False) -> Criteria:
    """Parse a policy's ``matchConstraints`` or a binding's ``matchResources``."""
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
