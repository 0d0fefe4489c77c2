"""Reads encrypted stores without a server, for ``census``, ``snapshot`` and ``storage verify``.

``wire/storage/encryption`` decrypts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from instar.cli.shared.failure import CliFailure
from instar.wire.storage.store import Record, Sealing, Store

if TYPE_CHECKING:
    from instar.wire.storage.encryption.providers import EncryptionProviders

PLAIN = "identity"
"""Name of the provider that stores values without encryption."""
_ENCRYPTED_PREFIX = b"k8s:enc:"
_PREFIX_PARTS = 5
"""Parts of an encrypted value's prefix: k8s, enc, provider, version, key."""


def decrypting_store(store: Store, config: Path | None) -> Store:
    """Wrap the store so that its values are decrypted by the given configuration."""
    if config is None:
        return store
    # Imported here, because most stores are not encrypted.
    from instar.wire.storage.encryption.store import encrypt_store

    return encrypt_store(store, _vault(config))


def write_key_name(store: Store, collection: str) -> str:
    """Return the key name that new values would use; empty if unknown."""
    if not isinstance(store, Sealing):
        return ""
    seal = store.seal_of(collection)
    return PLAIN if seal is None else seal.name


def key_of(record: Record) -> str:
    """Return the name of the encryption key of a value."""
    if record.seal is not None:
        return record.seal.name
    return is_encrypted_with(record.value) or PLAIN


def is_encrypted_with(value: bytes) -> str:
    if not value.startswith(_ENCRYPTED_PREFIX):
        return ""
    return b":".join(value[:300].split(b":", _PREFIX_PARTS)[:_PREFIX_PARTS]).decode(
        errors="replace"
    )


class Inspector:
    """Decrypts single values for verification."""

    def __init__(self, vault: EncryptionProviders | None) -> None:
        self._vault = vault
        self.shut = 0
        """Number of encrypted values that were not decrypted, for lack of a configuration."""

    @classmethod
    async def of(cls, config: Path | None) -> Inspector:
        vault = None if config is None else _vault(config)
        if vault is not None and vault.kms:
            raise CliFailure(
                "values encrypted with a KMS can be decrypted by a running server only"
            )
        return cls(vault)

    def plain(self, key: str, value: bytes) -> bytes | None:
        """Return the plaintext; None without a configuration, the ciphertext if decryption
        fails.
        """
        if not value.startswith(_ENCRYPTED_PREFIX):
            return value
        if self._vault is None:
            self.shut += 1
            return None
        # Imported here, because most stores are not encrypted.
        from instar.wire.storage.encryption.providers import default_place

        return self._vault.open(key, value, default_place(key))[0]

    async def close(self) -> None:
        if self._vault is not None:
            await self._vault.close()


def _vault(config: Path) -> EncryptionProviders:
    # Imported here, because most stores are not encrypted.
    from instar.server.lifecycle.encryption_setup import load_providers

    try:
        return load_providers(config)[0]
    except ValueError as error:
        raise CliFailure(f"--encryption-provider-config: {error}") from error
