"""Optional components, from settings: TLS options, encryption, audit, review webhooks, limits.

``loaded_settings.py`` and ``credentials.py`` call it at the start. A component's code is imported
only if it is configured. Raises ``ValueError`` with one line for the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from instar.base.metrics import Metric
from instar.server.access.authorization import modes_of
from instar.server.files.certificates import Certificates, server_context
from instar.server.http.tls import PROTOCOLS, ReloadingContext, cipher_string, minimum_version
from instar.server.registry.admission.plugin_configurations import PluginConfigurations
from instar.server.registry.admission.plugins.event_rate_limit import NAME as EVENT_RATE_LIMIT
from instar.server.registry.admission.plugins.image_policy import IMAGE_POLICY
from instar.server.settings import Settings

if TYPE_CHECKING:
    from instar.server.access.webhook_authorizer import WebhookAuthorizer
    from instar.server.audit.auditor import Auditor
    from instar.server.lifecycle.encryption_setup import EncryptionAtRest
    from instar.wire.client.review_client import ReviewClient


def client_authorities(settings: Settings) -> list[Path]:
    """CAs of client certificates, besides the server's own."""
    proxy = settings.front_proxy
    if proxy is not None and proxy.ca == settings.client_ca and not proxy.names:
        raise ValueError(
            "--requestheader-client-ca-file and --client-ca-file are the same: then "
            "--requestheader-allowed-names must name the proxies"
        )
    given = (settings.client_ca, None if proxy is None else proxy.ca)
    return [path for path in given if path is not None]


def plugin_configurations_of(settings: Settings) -> PluginConfigurations:
    """Return the configurations of the enabled admission plugins; some plugins require one."""
    on, path = settings.admission_plugins, settings.admission_config
    if path is None and not on & {EVENT_RATE_LIMIT, IMAGE_POLICY}:
        return PluginConfigurations()
    # Imported here: few servers configure plugins.
    from instar.server.lifecycle.admission_config import read_plugin_configurations

    return read_plugin_configurations(path, on)


def tls_of(settings: Settings, ours: Certificates) -> ReloadingContext:
    """Raises ``ValueError`` for files that cannot be used."""
    wanted, authorities = settings.tls, client_authorities(settings)
    minimum, ciphers = minimum_version(wanted.minimum), cipher_string(wanted.ciphers)
    if (wanted.cert is None) != (wanted.key is None):
        raise ValueError("a serving certificate needs its key, and the key its certificate")
    used = ours
    if wanted.cert is not None and wanted.key is not None:
        used = replace(ours, server_cert=wanted.cert, server_key=wanted.key)
    protocols = PROTOCOLS if wanted.http2 else PROTOCOLS[1:]
    return ReloadingContext(
        lambda: server_context(used, authorities, minimum, ciphers, protocols),
        [used.server_cert, used.server_key, *authorities],
    )


def foreign_certificate(settings: Settings) -> bytes:
    """A given serving certificate, which kubeconfigs must trust besides the server's own CA."""
    return b"" if settings.tls.cert is None else settings.tls.cert.read_bytes()


def encryption_of(settings: Settings) -> EncryptionAtRest | None:
    """Return the encryption at rest of the settings; None if none is configured."""
    if settings.encryption is None:
        return None
    # Imported here: without a configuration no cipher is needed.
    from instar.server.lifecycle.encryption_setup import EncryptionAtRest

    return EncryptionAtRest.load(settings.encryption)


def webhook_authorizer_of(settings: Settings) -> WebhookAuthorizer | None:
    if "Webhook" not in modes_of(settings.authorization):
        return None
    # Imported here: few servers authorise by webhook.
    from instar.server.access.webhook_authorizer import WebhookAuthorizer

    return WebhookAuthorizer.of(
        settings.authorization_webhook, settings.authorization_webhook_seconds
    )


def image_reviews_of(plugins: PluginConfigurations) -> ReviewClient | None:
    """The client of the webhook of ImagePolicyWebhook, where that is on."""
    policy = plugins.image_policy
    if policy is None:
        return None
    # Imported here: few servers have their images judged.
    from instar.wire.client.kubeconfig import KubeconfigError
    from instar.wire.client.review_client import ReviewClient

    try:
        return ReviewClient.of(policy.kubeconfig, "instar-image-policy", policy.first_pause)
    except KubeconfigError as error:
        raise ValueError(f"{IMAGE_POLICY}: {error}") from error


def audit_of(settings: Settings) -> tuple[Auditor | None, Sequence[Metric]]:
    """Return the auditor of the settings with its metrics; None if none is configured."""
    if settings.audit is None:
        return None, ()
    # Imported here: without a policy nothing is recorded.
    from instar.server.audit.setup import auditor_of

    auditor, metrics = auditor_of(settings.audit)
    return auditor, metrics.all()
