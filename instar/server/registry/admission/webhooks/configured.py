"""The webhooks there are, in the order they are asked: stored configurations, and what runs in
this process instead of behind a URL."""

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
from instar.server.registry.admission.config_cache import Followed
from instar.server.registry.admission.webhooks.in_process import LocalConfiguration, Review
from instar.server.registry.resources.admission import Operation
from instar.server.registry.stored.backend import Backend


@dataclass(frozen=True, slots=True)
class ConfiguredWebhook:
    webhook: WebhookConfiguration
    review: Review | None = None
    """In this process; None is behind its address."""


class Hooks:
    """Of one kind; falsy while there are none."""

    def __init__(
        self, backend: Backend, plural: str, local: Sequence[LocalConfiguration] = ()
    ) -> None:
        self._stored = Followed(backend, GROUP, plural, read_configuration)
        self._local = tuple(local)
        self._made_of: tuple[tuple[WebhookConfiguration, ...], ...] | None = None
        self._all: tuple[ConfiguredWebhook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._local) or bool(self._stored)

    def all(self) -> tuple[ConfiguredWebhook, ...]:
        """By name of the configuration, then as they are listed there."""
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
    """Configurations themselves are nobody's business, nor is what the server does by itself."""
    serving = operation.target.serving
    if serving.group == GROUP and serving.plural in EXEMPT:
        return True
    return operation.asked is OURSELVES
