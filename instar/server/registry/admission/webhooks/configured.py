"""The configured admission webhooks in call order: stored ones and in-process functions.

Read by ``mutating.py`` and ``validating.py`` on each request.
"""

from __future__ import annotations

from collections.abc import Sequence

from instar.base.fast_dataclass import dataclass
from instar.kube.access.attributes import OURSELVES
from instar.kube.admission.webhook_configurations import (
    EXEMPT,
    GROUP,
    WebhookConfiguration,
    read_configuration,
)
from instar.server.registry.admission.config_cache import ConfigCache
from instar.server.registry.admission.webhooks.in_process import LocalConfiguration, Review
from instar.server.registry.resources.admission import Operation
from instar.server.registry.stored.backend import Backend


@dataclass(frozen=True, slots=True)
class ConfiguredWebhook:
    """One webhook of a stored or in-process configuration."""

    webhook: WebhookConfiguration
    review: Review | None = None
    """The in-process function; None for a webhook behind a URL."""


class Hooks:
    """Webhooks of one kind; falsy while there are none."""

    def __init__(
        self, backend: Backend, plural: str, local: Sequence[LocalConfiguration] = ()
    ) -> None:
        self._stored = ConfigCache(backend, GROUP, plural, read_configuration)
        self._local = tuple(local)
        self._made_of: tuple[tuple[WebhookConfiguration, ...], ...] | None = None
        self._all: tuple[ConfiguredWebhook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._local) or bool(self._stored)

    def all(self) -> tuple[ConfiguredWebhook, ...]:
        """Return the webhooks by name of the configuration, then in their listed order."""
        stored = self._stored.current()
        if stored is not self._made_of:
            found = [ConfiguredWebhook(webhook) for listed in stored for webhook in listed]
            for local in self._local:
                found += [
                    ConfiguredWebhook(each, local.review)
                    for each in read_configuration(local.document)
                ]
            found.sort(key=lambda hook: hook.webhook.configuration.encode())
            self._made_of, self._all = stored, tuple(found)
        return self._all


def is_exempt(operation: Operation) -> bool:
    """Return whether webhooks are skipped: for webhook and policy configurations, and for the
    server's own writes."""
    serving = operation.target.serving
    if serving.group == GROUP and serving.plural in EXEMPT:
        return True
    return operation.asked is OURSELVES
