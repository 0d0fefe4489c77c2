"""Encryption at rest: loads the EncryptionConfiguration, reloads it, and polls KMS plugins.

``optional_parts.py`` loads it only if a configuration was given; ``storage_start.py`` wraps the
store with it. Ciphers and envelopes are in ``wire/storage/encryption``.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from pathlib import Path

from instar.base.metrics import Counter, Measured, Metric
from instar.base.supervision import rest
from instar.server.files.config_files import read_configuration
from instar.server.settings import EncryptionSettings
from instar.wire.storage.encryption.config import EncryptionConfigError, read
from instar.wire.storage.encryption.kms import AGAIN_SECONDS, EVERY_SECONDS
from instar.wire.storage.encryption.providers import EncryptionProviders
from instar.wire.storage.encryption.store import (
    EncryptingLocalStore,
    EncryptingStore,
    encrypt_store,
)
from instar.wire.storage.store import Store

log = logging.getLogger(__name__)
_CHECK_SECONDS = 1.0
"""Seconds between two checks whether the file has changed."""


class EncryptionAtRest:
    """The encryption configuration in use, and the store that it encrypts."""

    def __init__(
        self, settings: EncryptionSettings, vault: EncryptionProviders, digest: str
    ) -> None:
        self._settings = settings
        self._vault = vault
        self._digest = self._seen = digest
        self._store: EncryptingStore | None = None
        self._reloads = Counter(
            "apiserver_encryption_config_controller_automatic_reloads_total",
            "Attempts to use a changed encryption configuration.",
            ("status",),
        )
        self._operations = vault.operations

    @classmethod
    def load(cls, settings: EncryptionSettings) -> EncryptionAtRest:
        """Raises ``ValueError`` with one line for the operator."""
        vault, digest = load_providers(settings.config)
        return cls(settings, vault, digest)

    def before(self, store: Store) -> EncryptingStore:
        self._store = encrypt_store(store, self._vault)
        return self._store

    def trouble(self) -> str | None:
        """For /readyz: which KMS plugin does not answer."""
        return self._vault.trouble

    def metrics(self) -> tuple[Metric, ...]:
        info = Measured(
            "apiserver_encryption_config_controller_automatic_reload_last_config_info",
            "The encryption configuration in use.",
            ("hash",),
            lambda: [((f"sha256:{self._digest}",), 1)],
        )
        return self._operations, self._reloads, info

    async def warm(self) -> None:
        """Fetch the keys to read the store with. Raises ``Unavailable`` while a plugin is down."""
        await self._vault.refresh()
        if isinstance(self._store, EncryptingLocalStore):
            await self._store.warm()

    async def run(self) -> None:
        """Poll KMS plugins and the file until cancelled."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        while True:
            await rest(_CHECK_SECONDS)
            ill = self._vault.trouble is not None
            if loop.time() - asked >= (AGAIN_SECONDS if ill else EVERY_SECONDS):
                asked = loop.time()
                await self._ask(ill)
            if self._settings.reload:
                await self._look()

    async def _ask(self, was_ill: bool) -> None:
        await self._vault.refresh()
        well = self._vault.trouble is None
        if (
            (self._vault.has_recovered() or was_ill)
            and well
            and self._store is not None
            and self._store.unopened
        ):
            self._store.reopen("a KMS plugin is back")

    async def _look(self) -> None:
        """Use the file if it has changed and is valid; otherwise keep the former configuration."""
        try:
            digest = await asyncio.to_thread(_digest_of, self._settings.config)
        except OSError:
            return  # the file is being replaced; a missing file changes nothing
        if digest == self._seen:
            return
        self._seen = digest
        try:
            vault, digest = await asyncio.to_thread(load_providers, self._settings.config)
            await vault.refresh()
            if vault.trouble is not None:
                await vault.close()
                raise ValueError(vault.trouble)
        except ValueError as error:
            self._reloads.add(("failure",))
            log.error("the changed encryption configuration is not used: %s", error)
            return
        await self._use(vault, digest)

    async def _use(self, vault: EncryptionProviders, digest: str) -> None:
        former, self._vault, self._digest = self._vault, vault, digest
        vault.operations = self._operations  # counted together, across configurations
        self._reloads.add(("success",))
        log.info("the changed encryption configuration is in use")
        assert self._store is not None
        self._store.use(vault)
        if self._store.unopened:
            self._store.reopen("the encryption configuration has changed")
        await former.close()


def load_providers(path: Path) -> tuple[EncryptionProviders, str]:
    """The providers of a file, and its digest. Raises ``ValueError`` with one line."""
    file = read_configuration(path, "encryption provider configuration")
    try:
        rules = read(file.document)
    except EncryptionConfigError as error:
        raise file.refused(str(error)) from error
    return EncryptionProviders(rules), hashlib.sha256(file.data).hexdigest()


def _digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
