"""KMS v2 envelope format: the ``EncryptedObject`` message and the key derivation inside it.

Used by ``kms.py``, which calls the plugin. The plugin never sees values: it encrypts a seed, and
each value has its own key derived from the seed. Pure functions on bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import field, replace

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from instar.base.fast_dataclass import dataclass
from instar.wire.storage.encryption.ciphers import AesGcm, DecryptionFailed, ValueCipher
from instar.wire.storage.protobuf_fields import (
    UNREADABLE,
    as_bytes,
    as_int,
    bytes_field,
    fields,
    int_field,
)

KEY, SEED = 0, 1
"""What the plugin has encrypted: a key (legacy, only read) or a seed of keys."""
SEED_SIZE = 32
_INFO = 32
_MOST_SOURCE = _MOST_KEY_ID = 1 << 10
_MOST_ANNOTATIONS = 32 << 10


@dataclass(frozen=True, slots=True)
class Envelope:
    """A parsed ``EncryptedObject``."""

    data: bytes
    key_id: str
    source: bytes
    """The encrypted seed."""
    annotations: Mapping[str, bytes] = field(default_factory=dict)
    kind: int = SEED

    def identity(self) -> bytes:
        """Return a digest that is equal for all values of one seed."""
        digest = hashlib.sha256()
        parts = [str(self.kind).encode(), self.source, self.key_id.encode()]
        for name, value in sorted(self.annotations.items()):
            parts += [name.encode(), value]
        for part in parts:
            digest.update(len(part).to_bytes(4, "big") + part)
        return digest.digest()

    def holding(self, data: bytes) -> Envelope:
        return replace(self, data=data)


class Seeded:
    """Cipher with a derived key per value: random info bytes, then AES-GCM under the derived
    key."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) < SEED_SIZE:
            raise DecryptionFailed(f"invalid seed length {len(seed)} used for key generation")
        self._seed = seed

    def seal(self, value: bytes, place: bytes) -> bytes:
        info = os.urandom(_INFO)
        return info + self._derived(info).seal(value, place)

    def open(self, data: bytes, place: bytes) -> bytes:
        if len(data) < _INFO:
            raise DecryptionFailed("the stored data was shorter than the required size")
        return self._derived(data[:_INFO]).open(data[_INFO:], place)

    def _derived(self, info: bytes) -> AesGcm:
        return AesGcm(HKDFExpand(SHA256(), 32, info).derive(self._seed))


def cipher(envelope: Envelope, secret: bytes) -> ValueCipher:
    """Return the cipher that decrypts the envelope with the secret decrypted by the plugin."""
    if envelope.kind == SEED:
        return Seeded(secret)
    if len(secret) not in (16, 24, 32):
        raise DecryptionFailed(f"crypto/aes: invalid key size {len(secret)}")
    return AesGcm(secret)


def write(envelope: Envelope) -> bytes:
    check(envelope)
    parts = [
        bytes_field(1, envelope.data),
        bytes_field(2, envelope.key_id.encode()),
        bytes_field(3, envelope.source),
    ]
    parts += annotation_fields(4, envelope.annotations)
    parts.append(int_field(5, envelope.kind))
    return b"".join(parts)


def annotation_fields(number: int, annotations: Mapping[str, bytes]) -> list[bytes]:
    return [
        bytes_field(number, bytes_field(1, name.encode()) + bytes_field(2, value))
        for name, value in sorted(annotations.items())
    ]


def read_annotation(message: int | bytes) -> tuple[str, bytes]:
    name, content = "", b""
    for number, value in fields(as_bytes(message)):
        if number == 1:
            name = as_bytes(value).decode(errors="replace")
        elif number == 2:
            content = as_bytes(value)
    return name, content


def read(data: bytes) -> Envelope:
    """Parse an envelope. Raises ``DecryptionFailed``."""
    content = source = b""
    key_id, kind, annotations = "", KEY, dict[str, bytes]()
    try:
        for number, value in fields(data):
            if number == 1:
                content = as_bytes(value)
            elif number == 2:
                key_id = as_bytes(value).decode(errors="replace")
            elif number == 3:
                source = as_bytes(value)
            elif number == 4:
                name, note = read_annotation(value)
                annotations[name] = note
            elif number == 5:
                kind = as_int(value)
    except UNREADABLE as error:
        raise DecryptionFailed("proto: cannot parse invalid wire-format data") from error
    envelope = Envelope(content, key_id, source, annotations, kind)
    check(envelope)
    return envelope


def check(envelope: Envelope) -> None:
    """Raise ``DecryptionFailed`` for an envelope that upstream would reject."""
    if envelope.kind not in (KEY, SEED):
        raise DecryptionFailed(f"unknown encryptedDEKSourceType: {envelope.kind}")
    if not envelope.data:
        raise DecryptionFailed("encrypted data is empty")
    check_source(envelope.source)
    check_key_id(envelope.key_id)
    size = sum(len(name.encode()) + len(value) for name, value in envelope.annotations.items())
    if size > _MOST_ANNOTATIONS:
        raise DecryptionFailed(
            f"failed to validate annotations: total size of annotations is {size}"
        )


def check_source(source: bytes) -> None:
    if not source:
        raise DecryptionFailed(
            "failed to validate encrypted DEK source: encrypted DEK source is empty"
        )
    if len(source) > _MOST_SOURCE:
        raise DecryptionFailed(
            f"failed to validate encrypted DEK source: encrypted DEK source is {len(source)} "
            f"bytes, which exceeds the max size of {_MOST_SOURCE}"
        )


def check_key_id(key_id: str) -> None:
    if not key_id:
        raise DecryptionFailed("failed to validate key id: keyID is empty")
    size = len(key_id.encode())
    if size > _MOST_KEY_ID:
        raise DecryptionFailed(
            f"failed to validate key id: keyID is {size} bytes, which exceeds the max size of "
            f"{_MOST_KEY_ID}"
        )
