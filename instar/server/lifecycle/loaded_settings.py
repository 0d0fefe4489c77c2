"""Settings of a server, with the parsed contents of the files that they name.

``lifetime.py`` loads them before it opens the store, so that a wrong setting is reported before
anything is served; ``composition.py`` builds a server from them. Nothing is started here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import partial
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from instar.base.fast_dataclass import dataclass
from instar.base.metrics import Metric
from instar.base.supervision import Supervision
from instar.server.access.authorization import modes_of
from instar.server.access.identities import Identities
from instar.server.endpoints.health import Check
from instar.server.lifecycle.optional_parts import (
    audit_of,
    encryption_of,
    image_reviews_of,
    plugin_configurations_of,
    webhook_authorizer_of,
)
from instar.server.lifecycle.parts import Part, background_task
from instar.server.registry.admission.plugin_configurations import PluginConfigurations
from instar.server.settings import Settings

if TYPE_CHECKING:
    from instar.server.access.webhook_authorizer import WebhookAuthorizer
    from instar.server.audit.auditor import Auditor
    from instar.server.cluster_home.home import JoinedCluster
    from instar.server.lifecycle.encryption_setup import EncryptionAtRest
    from instar.wire.client.review_client import ReviewClient


@dataclass(frozen=True, kw_only=True)
class LoadedSettings:
    """Settings, and the components that their files configure."""

    settings: Settings
    identities: Identities
    authorization: tuple[str, ...]
    """Authorization modes, in the order in which they decide."""
    service_network: IPv4Network
    webhook_authorizer: WebhookAuthorizer | None = None
    encryption: EncryptionAtRest | None = None
    auditor: Auditor | None = None
    audit_metrics: Sequence[Metric] = ()
    plugins: PluginConfigurations = field(default_factory=PluginConfigurations)
    """Configurations of admission plugins."""
    image_reviews: ReviewClient | None = None
    """Asks the webhook of ImagePolicyWebhook; None where that is off."""
    joined: JoinedCluster | None = None
    """The main cluster that is the server's home; None: its own store is."""

    def checks(self) -> dict[str, Check]:
        """Checks of /readyz for optional components."""
        return {} if self.encryption is None else {"kms-providers": self.encryption.trouble}

    def metrics(self) -> Sequence[Metric]:
        sealed = () if self.encryption is None else self.encryption.metrics()
        return (*sealed, *self.audit_metrics)

    def request_parts(self, supervision: Supervision) -> list[Part]:
        """Parts that requests need besides the stored objects; started before the store is read."""
        trusted, webhook, auditor = self.identities.trusted, self.webhook_authorizer, self.auditor
        found: list[Part] = []
        if trusted is not None:
            found.append(Part("token issuers", partial(trusted.start, supervision), trusted.stop))
        if webhook is not None:
            found.append(Part("authorization webhook", stop=webhook.close))
        if self.image_reviews is not None:
            found.append(Part("image policy webhook", stop=self.image_reviews.close))
        if auditor is not None:
            found.append(Part("audit", partial(auditor.start, supervision), auditor.stop))
        return found

    def background_parts(self, supervision: Supervision) -> list[Part]:
        if self.encryption is None:
            return []
        return [background_task("encryption at rest", self.encryption.run, supervision)]


def load_settings(
    settings: Settings, identities: Identities, joined: JoinedCluster | None = None
) -> LoadedSettings:
    """Read the files that settings name. Raises ``ValueError`` with a line for the operator."""
    auditor, audit_metrics = audit_of(settings)
    plugins = plugin_configurations_of(settings)
    return LoadedSettings(
        settings=settings,
        identities=identities,
        authorization=modes_of(settings.authorization),
        service_network=_service_network(settings.service_cluster_ip_range),
        webhook_authorizer=webhook_authorizer_of(settings),
        encryption=encryption_of(settings),
        auditor=auditor,
        audit_metrics=audit_metrics,
        plugins=plugins,
        image_reviews=image_reviews_of(plugins),
        joined=joined,
    )


def _service_network(text: str) -> IPv4Network:
    try:
        return IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"service cluster IP range {text}: {error}") from error
