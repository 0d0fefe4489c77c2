"""Second implementations of the ciphers, from their papers, on Python's integers: they share no
code with the libraries that are judged by them."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_MASK = 0xFFFFFFFF


def _block(key: bytes, data: bytes) -> bytes:
    """AES on one block: the only thing taken from a library."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(data) + encryptor.finalize()


def _unblock(key: bytes, data: bytes) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.ECB()).decryptor()
    return decryptor.update(data) + decryptor.finalize()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=False))


def cbc_open(key: bytes, data: bytes) -> bytes:
    blocks = [data[at : at + 16] for at in range(0, len(data), 16)]
    plain = b"".join(
        _xor(_unblock(key, block), before) for before, block in itertools.pairwise(blocks)
    )
    return plain[: -plain[-1]]


def cbc_seal(key: bytes, iv: bytes, plain: bytes) -> bytes:
    missing = 16 - len(plain) % 16
    plain += bytes((missing,)) * missing
    out = [iv]
    for at in range(0, len(plain), 16):
        out.append(_block(key, _xor(plain[at : at + 16], out[-1])))
    return b"".join(out)


def _gf_product(x: int, y: int) -> int:
    product, factor = 0, x
    for bit in range(127, -1, -1):
        if y >> bit & 1:
            product ^= factor
        factor = factor >> 1 ^ (0xE1 << 120 if factor & 1 else 0)
    return product


def _ghash(subkey: int, *parts: bytes) -> int:
    state = 0
    for part in parts:
        padded = part + bytes(-len(part) % 16)
        for at in range(0, len(padded), 16):
            state = _gf_product(state ^ int.from_bytes(padded[at : at + 16]), subkey)
    return state


def gcm_seal(key: bytes, nonce: bytes, plain: bytes, bound: bytes) -> bytes:
    cipher = b""
    for number, at in enumerate(range(0, len(plain), 16), start=2):
        cipher += _xor(plain[at : at + 16], _block(key, nonce + number.to_bytes(4)))
    subkey = int.from_bytes(_block(key, bytes(16)))
    lengths = (len(bound) * 8).to_bytes(8) + (len(cipher) * 8).to_bytes(8)
    tag = _ghash(subkey, bound, cipher, lengths)
    return cipher + _xor(tag.to_bytes(16), _block(key, nonce + (1).to_bytes(4)))


def gcm_open(key: bytes, nonce: bytes, data: bytes, bound: bytes) -> bytes:
    cipher = data[:-16]
    plain = b""
    for number, at in enumerate(range(0, len(cipher), 16), start=2):
        plain += _xor(cipher[at : at + 16], _block(key, nonce + number.to_bytes(4)))
    assert gcm_seal(key, nonce, plain, bound) == data
    return plain


def hkdf_expand(seed: bytes, info: bytes) -> bytes:
    return hmac.new(seed, info + b"\x01", hashlib.sha256).digest()


def _turned(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


_QUARTERS = (
    *((0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11)),
    *((0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14)),
)


def _rounds(words: list[int]) -> list[int]:
    x = list(words)
    for _ in range(10):
        for a, b, c, d in _QUARTERS:
            x[b] ^= _turned(x[a] + x[d], 7)
            x[c] ^= _turned(x[b] + x[a], 9)
            x[d] ^= _turned(x[c] + x[b], 13)
            x[a] ^= _turned(x[d] + x[c], 18)
    return x


def _layout(key: bytes, middle: bytes) -> list[int]:
    c = struct.unpack("<4I", b"expand 32-byte k")
    k, n = struct.unpack("<8I", key), struct.unpack("<4I", middle)
    return [c[0], *k[:4], c[1], *n, c[2], *k[4:], c[3]]


def _stream(key: bytes, nonce: bytes, size: int) -> bytes:
    """XSalsa20: a key made from the first sixteen bytes of the nonce, then Salsa20."""
    mixed = _rounds(_layout(key, nonce[:16]))
    derived = struct.pack("<8I", *(mixed[at] for at in (0, 5, 10, 15, 6, 7, 8, 9)))
    out = b""
    for number in range(size // 64 + 1):
        words = _layout(derived, nonce[16:] + struct.pack("<Q", number))
        mixed = _rounds(words)
        out += struct.pack("<16I", *((a + b) & _MASK for a, b in zip(words, mixed, strict=True)))
    return out[:size]


def _poly1305(key: bytes, data: bytes) -> bytes:
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    state = 0
    for at in range(0, len(data), 16):
        state = (state + int.from_bytes(data[at : at + 16] + b"\x01", "little")) * r % (2**130 - 5)
    return ((state + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


def secretbox_seal(key: bytes, nonce: bytes, plain: bytes) -> bytes:
    stream = _stream(key, nonce, 32 + len(plain))
    cipher = _xor(plain, stream[32:])
    return _poly1305(stream[:32], cipher) + cipher


def secretbox_open(key: bytes, nonce: bytes, data: bytes) -> bytes:
    plain = _xor(data[16:], _stream(key, nonce, 32 + len(data) - 16)[32:])
    assert secretbox_seal(key, nonce, plain) == data
    return plain
