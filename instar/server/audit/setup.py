"""Auditor from settings: reads the policy file, opens the log, configures the webhook.

``lifecycle/optional_parts.py`` imports it only if a policy is given.
"""

from __future__ import annotations

import logging
from pathlib import Path

from instar.base.metrics import Counter
from instar.server.audit.auditor import AuditMetrics, Auditor
from instar.server.audit.logfile import LogFile, LogOutput, Rotation, Stdout
from instar.server.audit.policy import AuditPolicy, AuditPolicyError, read
from instar.server.audit.sinks import Batching, LogSink, Sink, WebhookSink
from instar.server.files.config_files import read_configuration
from instar.server.settings import AuditLogSettings, AuditSettings, AuditWebhookSettings
from instar.wire.client.http import Http
from instar.wire.client.kubeconfig import Access, KubeconfigError, read_kubeconfig
from instar.wire.client.transport import ConnectionLost

log = logging.getLogger(__name__)
_CALL_SECONDS = 30.0


def auditor_of(settings: AuditSettings) -> tuple[Auditor, AuditMetrics]:
    """Raises ``ValueError`` with one line for the operator."""
    policy, metrics = read_policy(settings.policy), AuditMetrics()
    sinks: list[Sink] = []
    if settings.log is not None:
        sinks.append(_log_sink(settings.log, metrics.errors))
    if settings.webhook is not None:
        sinks.append(_webhook_sink(settings.webhook, metrics.errors))
    mode = "batch" if settings.log is None else settings.log.mode
    auditor = Auditor(
        policy, sinks, metrics, patient=mode != "batch", strict=mode == "blocking-strict"
    )
    return auditor, metrics


def read_policy(path: Path) -> AuditPolicy:
    file = read_configuration(path, "audit policy")
    try:
        policy = read(file.document)
    except AuditPolicyError as error:
        raise ValueError(f"loading audit policy file: {file.refused(str(error))}") from error
    if policy.unknown:
        told = ", ".join(f'unknown field "{name}"' for name in policy.unknown)
        log.warning('audit policy file "%s": %s; ignored', path, told)
    return policy


def _log_sink(settings: AuditLogSettings, errors: Counter) -> LogSink:
    output: LogOutput
    if settings.path == "-":
        output = Stdout()
    else:
        output = file = LogFile(
            Path(settings.path),
            Rotation(
                megabytes=settings.megabytes,
                days=settings.days,
                backups=settings.backups,
                compress=settings.compress,
            ),
        )
        try:
            file.check()
        except OSError as error:
            raise ValueError(
                f"audit log {settings.path} cannot be written: {error.strerror}"
            ) from error
    return LogSink(
        output,
        errors,
        legacy=settings.format == "legacy",
        room=settings.room,
        longest=settings.longest,
    )


def _webhook_sink(settings: AuditWebhookSettings, errors: Counter) -> WebhookSink:
    try:
        access = read_kubeconfig([settings.config])
        caller = _Caller(access)
    except KubeconfigError as error:
        raise ValueError(f"initializing audit webhook: {error}") from error
    batching = Batching(
        room=settings.room,
        most=settings.most,
        wait=settings.wait,
        throttled=settings.throttled,
        per_second=settings.per_second,
        burst=settings.burst,
    )
    return WebhookSink(caller, errors, batching, backoff=settings.backoff, longest=settings.longest)


class _Caller:
    """POSTs lists of events to the server of a kubeconfig."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._http = Http(access.ssl_context(), _CALL_SECONDS, proxies=True)

    async def post(self, body: bytes) -> None:
        headers = {"content-type": "application/json", "accept": "application/json"}
        try:
            bearer = self._access.bearer()
            if bearer:
                headers["authorization"] = f"Bearer {bearer}"
            reply = await self._http.send(
                "POST",
                self._access.server,
                headers=headers,
                body=body,
                query={"timeout": "30s"},
                server_name=self._access.server_name,
            )
        except (ConnectionLost, KubeconfigError) as error:
            raise ConnectionError(str(error)) from error
        if not 200 <= reply.status < 300:
            raise ConnectionError(f"the webhook answered {reply.status}")

    async def close(self) -> None:
        await self._http.close()
