"""Encryption providers per resource: builds ciphers from the rules of an encryption configuration.

Used by ``store.py`` (the encrypting ``Store``) and by ``server/lifecycle/encryption_setup.py``. The
key of a value tells its resource. The first provider of the matching rule encrypts; any of them may
decrypt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from instar.base.metrics import Counter
from instar.wire.storage.encryption.ciphers import CIPHERS, DecryptionFailed, ValueCipher
from instar.wire.storage.encryption.config import (
    EncryptionRule,
    GroupPlural,
    IdentityProvider,
    Keyed,
    Kms,
    Provider,
)
from instar.wire.storage.encryption.kms import KmsProvider, MissingKmsKey
from instar.wire.storage.encryption.plugin import GrpcPlugin
from instar.wire.storage.keys import CORE, collection_of, in_layout
from instar.wire.storage.store import Seal

ENCRYPTED = b"k8s:enc:"
_PATHS = "/registry/"
"""Key prefix to bind in stores other than etcd, so that values can be copied to etcd."""


class _Provider(Protocol):
    prefix: bytes

    @property
    def current(self) -> Seal | None: ...

    async def seal(self, value: bytes, place: bytes) -> tuple[bytes, Seal | None]: ...

    def open(self, data: bytes, place: bytes) -> tuple[bytes, Seal | None]: ...


class _Plaintext:
    prefix = b""
    current: Seal | None = None

    async def seal(self, value: bytes, place: bytes) -> tuple[bytes, Seal | None]:
        return value, None

    def open(self, data: bytes, place: bytes) -> tuple[bytes, Seal | None]:
        if data.startswith(ENCRYPTED):
            raise DecryptionFailed("identity transformer tried to read encrypted data")
        return data, None


class _Keys:
    """A provider with named keys: the first encrypts, the one named in the prefix decrypts."""

    def __init__(self, keyed: Keyed) -> None:
        self.prefix = f"k8s:enc:{keyed.kind}:v1:".encode()
        family = "Secretbox" if keyed.kind == "secretbox" else "AES"
        self._unknown = f"no matching key was found for the provided {family} transformer"
        self._keys: list[tuple[bytes, ValueCipher, Seal]] = []
        for key in keyed.keys:
            mark = hashlib.sha256(key.secret).hexdigest()[:16]
            seal = Seal(f"k8s:enc:{keyed.kind}:v1:{key.name}", mark)
            self._keys.append((f"{key.name}:".encode(), CIPHERS[keyed.kind](key.secret), seal))

    @property
    def current(self) -> Seal:
        return self._keys[0][2]

    async def seal(self, value: bytes, place: bytes) -> tuple[bytes, Seal | None]:
        name, cipher, seal = self._keys[0]
        return b"".join((self.prefix, name, cipher.seal(value, place))), seal

    def open(self, data: bytes, place: bytes) -> tuple[bytes, Seal | None]:
        refusals: list[str] = []
        for name, cipher, seal in self._keys:
            if data.startswith(name):
                try:
                    return cipher.open(data[len(name) :], place), seal
                except DecryptionFailed as refused:
                    refusals.append(str(refused))
        raise DecryptionFailed(_joined_errors(refusals) or self._unknown)


class _ProviderChain:
    """The providers of one resource, in the order of the configuration."""

    def __init__(self, openers: Sequence[_Provider]) -> None:
        self._openers = openers
        self.first = openers[0]

    def open(self, value: bytes, place: bytes) -> tuple[bytes, Seal | None]:
        refusals: list[str] = []
        for opener in self._openers:
            if value.startswith(opener.prefix):
                try:
                    return opener.open(value[len(opener.prefix) :], place)
                except DecryptionFailed as refused:
                    # The identity provider may come first; on a mismatch try the next provider.
                    if opener.prefix:
                        refusals.append(str(refused))
        raise DecryptionFailed(_joined_errors(refusals) or "no matching prefix found")


class _NoRule(_ProviderChain):
    """For resources without a rule: values pass unchanged."""

    def __init__(self) -> None:
        super().__init__([_Plaintext()])

    def open(self, value: bytes, place: bytes) -> tuple[bytes, Seal | None]:
        return self.first.open(value, place)


PluginMaker = Callable[[Kms], GrpcPlugin]


def _grpc_plugin(kms: Kms) -> GrpcPlugin:
    return GrpcPlugin(kms.socket, kms.timeout)


class EncryptionProviders:
    """Encrypts and decrypts by one configuration. Immutable: a reload creates a new one."""

    def __init__(self, rules: Iterable[EncryptionRule], plugin: PluginMaker = _grpc_plugin) -> None:
        self.kms: list[KmsProvider] = []
        self._plugin = plugin
        openers: dict[GroupPlural, list[_Provider]] = {}
        for rule in rules:
            made = [self._opener(provider) for provider in rule.providers]
            for subject in rule.subjects:
                openers.setdefault(subject, []).extend(made)
        self._rings = {subject: _ProviderChain(found) for subject, found in openers.items()}
        self._untouched = _NoRule()
        self._by_collection: dict[str, _ProviderChain] = {}
        self.operations = Counter(
            "apiserver_storage_transformation_operations_total",
            "Values sealed and opened.",
            ("resource", "transformation_type", "transformer_prefix", "status"),
        )

    def current(self, collection: str) -> Seal | None:
        """Return the encryption key that a write to the collection would use now."""
        return self._ring(collection).first.current

    async def seal(self, key: str, value: bytes, place: bytes) -> tuple[bytes, Seal | None]:
        if not in_layout(key):
            return value, None
        collection = collection_of(key)
        ring = self._ring(collection)
        sealed = await ring.first.seal(value, place)
        self._count(collection, "to_storage", ring.first.prefix, "OK")
        return sealed

    def open(self, key: str, value: bytes, place: bytes) -> tuple[bytes, Seal | None]:
        """Decrypt a value. One that cannot be decrypted is returned as stored, with the cause in
        its seal. Raises ``MissingKmsKey`` where a plugin must be called first."""
        if not in_layout(key):
            return value, None
        collection = collection_of(key)
        try:
            opened = self._ring(collection).open(value, place)
        except DecryptionFailed as refused:
            self._count(collection, "from_storage", ENCRYPTED, "Unknown")
            return value, Seal(_prefix_text(value), problem=str(refused))
        if opened[1] is not None:
            prefix = value[: value.find(b":", len(ENCRYPTED)) + 4]
            self._count(collection, "from_storage", prefix, "OK")
        return opened

    async def refresh(self) -> None:
        for provider in self.kms:
            await provider.refresh()

    def has_recovered(self) -> bool:
        """Return whether a plugin has decrypted since the last call what it refused before."""
        found = any(provider.recovered for provider in self.kms)
        for provider in self.kms:
            provider.recovered = False
        return found

    @property
    def trouble(self) -> str | None:
        return next((each.trouble for each in self.kms if each.trouble is not None), None)

    async def close(self) -> None:
        for provider in self.kms:
            await provider.close()

    def _opener(self, provider: Provider) -> _Provider:
        if isinstance(provider, Keyed):
            return _Keys(provider)
        if isinstance(provider, IdentityProvider):
            return _Plaintext()
        self.kms.append(KmsProvider(provider.name, self._plugin(provider)))
        return self.kms[-1]

    def _ring(self, collection: str) -> _ProviderChain:
        ring = self._by_collection.get(collection)
        if ring is None:
            ring = self._by_collection[collection] = self._find(subject_of(collection))
        return ring

    def _find(self, subject: GroupPlural) -> _ProviderChain:
        for asked in (subject, GroupPlural("*", subject.group), GroupPlural("*", "*")):
            if asked in self._rings:
                return self._rings[asked]
        return self._untouched

    def _count(self, collection: str, way: str, prefix: bytes, status: str) -> None:
        labels = (str(subject_of(collection)), way, prefix.decode(errors="replace"), status)
        self.operations.add(labels)


def subject_of(collection: str) -> GroupPlural:
    group, plural = collection.rstrip("/").split("/")
    return GroupPlural(plural, "" if group == CORE else group)


def default_place(key: str) -> bytes:
    """Return a key as kube-apiserver stores it in etcd; ciphers authenticate it."""
    return (_PATHS + key).encode(errors="surrogateescape")


def _prefix_text(value: bytes) -> str:
    """Return the readable prefix of an encrypted value: provider, version and key name."""
    parts = value[:256].split(b":", 5)
    if value.startswith(ENCRYPTED) and len(parts) > 4:
        return b":".join(parts[:5]).decode(errors="replace")
    return "unknown"


def _joined_errors(texts: Sequence[str]) -> str:
    unique = list(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]" if unique else ""


__all__ = ["ENCRYPTED", "EncryptionProviders", "MissingKmsKey", "default_place", "subject_of"]
