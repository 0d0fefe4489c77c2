"""Ciphers of encryption at rest (AES-CBC, AES-GCM, Secretbox), in kube-apiserver's byte layout.

Used by ``providers.py`` and ``envelope.py`` for the bytes after a provider's prefix. ``place`` is
the key in etcd, which authenticated ciphers bind to the value, so that a value moved to another key
does not decrypt.
"""

from __future__ import annotations

import os
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_BLOCK, _GCM_NONCE, _SECRETBOX_LEAST = 16, 12, 24 + 16
_TOO_SHORT_TEXT = "the stored data was shorter than the required size"


class DecryptionFailed(Exception):
    """A value cannot be decrypted; ``str()`` is upstream's text."""


class ValueCipher(Protocol):
    """Encrypts and decrypts values; ``place`` is the key that a value is bound to."""

    def seal(self, value: bytes, place: bytes) -> bytes: ...

    def open(self, data: bytes, place: bytes) -> bytes:
        """Raises ``DecryptionFailed``."""
        ...


class AesCbc:
    """Layout: IV, then whole blocks. Not authenticated: damage may go unnoticed."""

    def __init__(self, secret: bytes) -> None:
        self._algorithm = algorithms.AES(secret)

    def seal(self, value: bytes, place: bytes) -> bytes:
        iv = os.urandom(_BLOCK)
        missing = _BLOCK - len(value) % _BLOCK
        encryptor = Cipher(self._algorithm, modes.CBC(iv)).encryptor()
        padded = value + bytes((missing,)) * missing
        return iv + encryptor.update(padded) + encryptor.finalize()

    def open(self, data: bytes, place: bytes) -> bytes:
        if len(data) < _BLOCK:
            raise DecryptionFailed(_TOO_SHORT_TEXT)
        iv, blocks = data[:_BLOCK], data[_BLOCK:]
        if len(blocks) % _BLOCK:
            raise DecryptionFailed("the stored data is not a multiple of the block size")
        if not blocks:
            raise DecryptionFailed(_TOO_SHORT_TEXT)
        decryptor = Cipher(self._algorithm, modes.CBC(iv)).decryptor()
        padded = decryptor.update(blocks) + decryptor.finalize()
        missing = padded[-1]
        if not 0 < missing <= len(padded):
            raise DecryptionFailed("invalid PKCS7 data (empty or not padded)")
        if padded[-missing:] != bytes((missing,)) * missing:
            raise DecryptionFailed("invalid padding on input")
        return padded[:-missing]


class AesGcm:
    """Layout: nonce, then ciphertext and tag."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(secret)

    def seal(self, value: bytes, place: bytes) -> bytes:
        nonce = os.urandom(_GCM_NONCE)
        return nonce + self._cipher.encrypt(nonce, value, place)

    def open(self, data: bytes, place: bytes) -> bytes:
        if len(data) < _GCM_NONCE:
            raise DecryptionFailed(_TOO_SHORT_TEXT)
        try:
            return self._cipher.decrypt(data[:_GCM_NONCE], data[_GCM_NONCE:], place)
        except (InvalidTag, ValueError) as error:
            raise DecryptionFailed("cipher: message authentication failed") from error


class Secretbox:
    """XSalsa20 with Poly1305. Layout: nonce, tag, ciphertext. ``place`` is not bound."""

    def __init__(self, secret: bytes) -> None:
        # Imported here, because only this cipher needs libsodium.
        from nacl.secret import SecretBox

        self._box = SecretBox(secret)

    def seal(self, value: bytes, place: bytes) -> bytes:
        return bytes(self._box.encrypt(value))

    def open(self, data: bytes, place: bytes) -> bytes:
        # Imported here, because only this cipher needs libsodium.
        from nacl.exceptions import CryptoError

        if len(data) < _SECRETBOX_LEAST:
            raise DecryptionFailed(_TOO_SHORT_TEXT)
        try:
            return bytes(self._box.decrypt(data))
        except CryptoError as error:
            raise DecryptionFailed("output array was not large enough for encryption") from error


CIPHERS: dict[str, type[AesCbc] | type[AesGcm] | type[Secretbox]] = {
    "aescbc": AesCbc,
    "aesgcm": AesGcm,
    "secretbox": Secretbox,
}
