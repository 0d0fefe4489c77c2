"""Views of a pod spec for the checks: containers, security contexts, and phrases of upstream's
messages.

``baseline.py`` and ``restricted.py`` build their checks on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from instar.base.json_values import Object


class Violation(NamedTuple):
    """Result of a failed check: the reason, and the detail that names containers and values."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


class PodView(NamedTuple):
    """Metadata and spec of a pod or a pod template."""

    metadata: Object
    spec: Object

    def containers(self) -> Iterator[Object]:
        """Yield init, ordinary and ephemeral containers, in upstream's order."""
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            yield from self.spec.get(kind) or ()

    def context(self) -> Object:
        return self.spec.get("securityContext") or {}

    def annotations(self) -> dict[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def is_windows(self) -> bool:
        return bool((self.spec.get("os") or {}).get("name") == "windows")

    @property
    def has_user_namespace(self) -> bool:
        return self.spec.get("hostUsers") is False


PodCheck = Callable[[PodView], Violation | None]


def context_of(container: Object) -> Object:
    """Return a container's ``securityContext``; empty if it has none."""
    return container.get("securityContext") or {}


def names_where(pod: PodView, test: Callable[[Object], bool]) -> list[str]:
    """Return the names of the containers for which the test holds."""
    return [str(item.get("name", "")) for item in pod.containers() if test(item)]


def quote_names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def plural(count: int, one: str, many: str = "") -> str:
    return one if count == 1 else many or f"{one}s"


def containers_named(names: list[str]) -> str:
    return f"{plural(len(names), 'container')} {quote_names(names)}"


def setters(pod_is_bad: bool, names: list[str]) -> str:
    """Return which parts set a forbidden value: ``pod and containers "a", "b"``; may be empty."""
    parts = ["pod"] if pod_is_bad else []
    return " and ".join([*parts, containers_named(names)] if names else parts)


def skip_exempt_pods(pod_is_exempt: Callable[[PodView], bool], check: PodCheck) -> PodCheck:
    """Return the check for all pods but those that are exempt."""
    return lambda pod: None if pod_is_exempt(pod) else check(pod)


def for_user_namespaces(check: PodCheck) -> PodCheck:
    return skip_exempt_pods(lambda pod: pod.has_user_namespace, check)


def for_linux(check: PodCheck) -> PodCheck:
    return skip_exempt_pods(lambda pod: pod.is_windows, check)


def profile_type(context: Object, field: str) -> Any:
    """Return the ``type`` of a profile, or None where no profile is set."""
    profile = context.get(field)
    return None if profile is None else str(profile.get("type", ""))
