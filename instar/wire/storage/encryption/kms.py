"""KMS provider: encrypts values under a seed that a KMS plugin has encrypted.

Created by ``providers.py``. There is one seed per process and plugin key, so that the plugin is
called rarely. Seeds of other processes are decrypted by the plugin on first use and cached; a value
without a cached seed raises ``MissingKmsKey``, because decryption must not wait. ``plugin.py``
does the calls.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple, TypeVar

from instar.wire.storage.encryption import envelope as envelopes
from instar.wire.storage.encryption.ciphers import DecryptionFailed, ValueCipher
from instar.wire.storage.encryption.envelope import SEED_SIZE, Envelope, Seeded
from instar.wire.storage.encryption.plugin import Plugin, Status, Wrapped
from instar.wire.storage.store import Seal, StoreError, Unavailable

PREFIX = "k8s:enc:kms:v2:"
EVERY_SECONDS, AGAIN_SECONDS = 60.0, 3.0
_SEED_SECONDS = 180.0
"""Seconds after the last healthy status of the plugin in which values are still encrypted."""
_VERSIONS = ("v2", "v2beta1")
_MOST_SEEDS = 10_000
_REFUSED_AT_ONCE = 100
T = TypeVar("T")


class MissingKmsKey(Exception):
    """The value's seed is not cached: ``await provider.learn(envelope)`` and try again."""

    def __init__(self, provider: KmsProvider, envelope: Envelope) -> None:
        super().__init__("the key of this value was not asked for yet")
        self.provider, self.envelope = provider, envelope


class _CurrentSeed(NamedTuple):
    cipher: ValueCipher
    form: Envelope
    until: float


class _Refusal(NamedTuple):
    """Why the plugin did not decrypt a seed."""

    text: str
    envelope: Envelope


class KmsProvider:
    """One ``kms`` provider of the configuration."""

    def __init__(self, name: str, plugin: Plugin, clock: Callable[[], float] = monotonic) -> None:
        self.name = name
        self.prefix = f"{PREFIX}{name}:".encode()
        self.trouble: str | None = "no status call yet"
        """Why the plugin is not usable; None when it is healthy."""
        self._plugin = plugin
        self._clock = clock
        self._ciphers: dict[bytes, ValueCipher] = {}
        self._refusals: dict[bytes, _Refusal] = {}
        self.recovered = False
        """Whether a seed that the plugin once refused was decrypted since."""
        self._writing: _CurrentSeed | None = None

    @property
    def current(self) -> Seal:
        return self._seal(self._writing.form.key_id if self._writing is not None else "")

    async def refresh(self) -> None:
        """Query the plugin's status; a new key id of the plugin requires a new seed."""
        try:
            status = await self._plugin.status()
            _check(self.name, status)
            if self._writing is None or self._writing.form.key_id != status.key_id:
                await self._new_seed()
            else:
                self._writing = self._writing._replace(until=self._clock() + _SEED_SECONDS)
        except (DecryptionFailed, StoreError) as error:
            self.trouble = str(error)
            return
        self.trouble = None
        await self._learn_refused()

    async def _learn_refused(self) -> None:
        """Ask again for the seeds that were refused: a plugin may fail for a while only."""
        refused = list(self._refusals.values())[:_REFUSED_AT_ONCE]
        self._refusals.clear()
        for _, envelope in refused:
            try:
                await self.learn(envelope)
            except Unavailable as error:
                self.trouble = str(error)
                return
            self.recovered = self.recovered or envelope.identity() in self._ciphers

    async def seal(self, value: bytes, place: bytes) -> tuple[bytes, Seal]:
        """Encrypt a value. Raises ``Unavailable`` while no plugin can encrypt a seed."""
        if self._writing is None:
            await self.refresh()
        writing = self._writing
        if writing is None or self._clock() > writing.until:
            raise Unavailable(f"KMS provider {self.name} cannot be used: {self.trouble}")
        form = writing.form.holding(writing.cipher.seal(value, place))
        return self.prefix + envelopes.write(form), self.current

    def open(self, data: bytes, place: bytes) -> tuple[bytes, Seal]:
        """Decrypt a value. Raises ``DecryptionFailed``, and ``MissingKmsKey`` where the plugin must
        be called first."""
        envelope = envelopes.read(data)
        identity = envelope.identity()
        cipher = self._ciphers.get(identity)
        if cipher is None:
            refusal = self._refusals.get(identity)
            if refusal is not None:
                raise DecryptionFailed(refusal.text)
            raise MissingKmsKey(self, envelope)
        return cipher.open(envelope.data, place), self._seal(envelope.key_id, envelope.kind)

    async def learn(self, envelope: Envelope) -> None:
        """Have the plugin decrypt the envelope's seed. Raises ``Unavailable``; a refusal is
        cached."""
        identity = envelope.identity()
        if identity in self._ciphers:
            return
        wrapped = Wrapped(envelope.source, envelope.key_id, envelope.annotations)
        try:
            secret = await self._plugin.decrypt(wrapped, _uid())
            cipher = envelopes.cipher(envelope, secret)
        except DecryptionFailed as error:
            text = f"failed to decrypt DEK, error: {error}"
            _put_bounded(self._refusals, identity, _Refusal(text, envelope.holding(b"")))
            return
        _put_bounded(self._ciphers, identity, cipher)

    async def close(self) -> None:
        await self._plugin.close()

    async def _new_seed(self) -> None:
        seed = os.urandom(SEED_SIZE)
        wrapped = await self._plugin.encrypt(seed, _uid())
        form = Envelope(b"\0", wrapped.key_id, wrapped.ciphertext, wrapped.annotations)
        envelopes.check(form)
        cipher = Seeded(seed)
        _put_bounded(self._ciphers, form.identity(), cipher)
        self._writing = _CurrentSeed(cipher, form, self._clock() + _SEED_SECONDS)

    def _seal(self, key_id: str, kind: int = envelopes.SEED) -> Seal:
        name = f"{PREFIX}{self.name}"
        return Seal(f"{name}:{key_id}" if key_id else name, mark=str(kind))


def _put_bounded(known: dict[bytes, T], identity: bytes, value: T) -> None:
    if len(known) >= _MOST_SEEDS:
        del known[next(iter(known))]
    known[identity] = value


def _check(name: str, status: Status) -> None:
    problems = []
    if status.healthz != "ok":
        problems.append(f"got unexpected healthz status: {status.healthz}")
    if status.version not in _VERSIONS:
        problems.append(f"expected KMSv2 API version v2, got {status.version}")
    if not status.key_id:
        problems.append("expected KMSv2 KeyID to be set, got ")
    if problems:
        told = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise DecryptionFailed(f"kmsv2 Provider {name} is not healthy, error: {told}")
    envelopes.check_key_id(status.key_id)


def _uid() -> str:
    return str(uuid.uuid4())
