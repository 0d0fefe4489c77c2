"""Every metric: of a server with every part that counts, of the PostgreSQL store, of a server with
``--cluster``, and of a conversion webhook."""

from __future__ import annotations

import tempfile
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

from docsite.markdown import code, plain
from instar.base.metrics import Metric
from instar.server.cluster_home.metrics import ReviewMetrics, reachable_gauge
from instar.server.settings import AuditSettings, EncryptionSettings, Settings
from instar.tools.sdk.metrics import ConversionWebhookMetrics
from instar.tools.testing.api_server import in_thread
from instar.wire.storage.postgres.metrics import PostgresMetrics

_AUDIT = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None}]}"
_ENCRYPTION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [secrets]
    providers: [{secretbox: {keys: [{name: one, secret: SECRET}]}}]
"""


def metrics() -> str:
    return (
        f"## The server\n\n`/metrics` of `instar serve`.\n\n{_listed(server_metrics())}\n"
        "## The PostgreSQL store\n\nAt the same place, with `--storage postgresql://…`.\n\n"
        f"{_listed(PostgresMetrics().all())}\n"
        "## A server inside a cluster\n\nAt the same place, with `--cluster`.\n\n"
        f"{_listed(cluster_metrics())}\n"
        "## A conversion webhook\n\n`/metrics` of `instar webhook`.\n\n"
        f"{_listed(ConversionWebhookMetrics().all())}"
    )


def cluster_metrics() -> list[Metric]:
    reviews = (ReviewMetrics("authn", "authentication"), ReviewMetrics("authz", "authorization"))
    return [*(metric for each in reviews for metric in each.all()), reachable_gauge(lambda: None)]


def server_metrics() -> list[Metric]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audit, encryption = folder / "audit.yaml", folder / "encryption.yaml"
        audit.write_text(_AUDIT)
        encryption.write_text(_ENCRYPTION.replace("SECRET", b64encode(bytes(32)).decode()))
        settings = Settings(
            port=0,
            audit=AuditSettings(policy=audit),
            encryption=EncryptionSettings(config=encryption),
        )
        with in_thread(settings) as (running, _):
            return list(running.machinery.metrics.all)


def _listed(found: Iterable[Metric]) -> str:
    """Names are long: a table would leave no room for what they mean."""
    return "\n".join(map(_entry, sorted(found, key=lambda metric: metric.name)))


def _entry(metric: Metric) -> str:
    labels = f" by {', '.join(map(code, metric.labels))}" if metric.labels else ""
    return f"{code(metric.name)}\n: {plain(metric.help)} *{metric.kind}*{labels}\n"
