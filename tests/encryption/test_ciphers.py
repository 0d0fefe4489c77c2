"""The bytes behind a key's prefix: against published vectors and second implementations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.wire.storage.encryption.ciphers import AesCbc, AesGcm, DecryptionFailed, Secretbox
from instar.wire.storage.encryption.envelope import Seeded
from tests.encryption import oracles

KEY16, KEY24, KEY32 = bytes(range(16)), bytes(range(24)), bytes(range(32))
PLACE = b"/registry/ex.io/foos/default/f1"
values = st.binary(max_size=200)
keys = st.sampled_from([KEY16, KEY24, KEY32])


def test_aesgcm_opens_the_vector_of_its_paper() -> None:
    """McGrew and Viega, test case 16."""
    key = bytes.fromhex("feffe9928665731c6d6a8f9467308308" * 2)
    nonce = bytes.fromhex("cafebabefacedbaddecaf888")
    bound = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    sealed = bytes.fromhex(
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        "76fc6ece0f4e1768cddf8853bb2d551b"
    )

    assert AesGcm(key).open(nonce + sealed, bound) == bytes.fromhex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
    )


def test_secretbox_opens_the_vector_of_its_paper() -> None:
    """Bernstein, "Cryptography in NaCl", section 10."""
    key = bytes.fromhex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389")
    nonce = bytes.fromhex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37")
    sealed = bytes.fromhex(
        "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce"
        "48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c972"
        "71d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae"
        "90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b3"
        "7973f622a43d14a6599b1f654cb45a74e355a5"
    )

    opened = Secretbox(key).open(nonce + sealed, PLACE)

    assert opened.hex().startswith("be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244f")
    assert oracles.secretbox_open(key, nonce, sealed) == opened


@given(keys, values)
def test_aescbc_is_iv_and_padded_blocks(key: bytes, value: bytes) -> None:
    sealed = AesCbc(key).seal(value, PLACE)

    assert oracles.cbc_open(key, sealed) == value
    assert AesCbc(key).open(oracles.cbc_seal(key, bytes(16), value), b"elsewhere") == value


@given(keys, values)
def test_aesgcm_is_nonce_ciphertext_and_tag_bound_to_the_place(key: bytes, value: bytes) -> None:
    sealed = AesGcm(key).seal(value, PLACE)

    assert oracles.gcm_open(key, sealed[:12], sealed[12:], PLACE) == value
    theirs = oracles.gcm_seal(key, bytes(12), value, PLACE)
    assert AesGcm(key).open(bytes(12) + theirs, PLACE) == value


@given(values)
def test_secretbox_is_nonce_tag_and_ciphertext(value: bytes) -> None:
    sealed = Secretbox(KEY32).seal(value, PLACE)

    assert oracles.secretbox_open(KEY32, sealed[:24], sealed[24:]) == value
    theirs = oracles.secretbox_seal(KEY32, bytes(24), value)
    assert Secretbox(KEY32).open(bytes(24) + theirs, PLACE) == value


@given(values)
def test_a_seed_gives_each_value_a_key_of_its_own(value: bytes) -> None:
    sealed = Seeded(KEY32).seal(value, PLACE)

    info, rest = sealed[:32], sealed[32:]
    key = oracles.hkdf_expand(KEY32, info)
    assert oracles.gcm_open(key, rest[:12], rest[12:], PLACE) == value


@pytest.mark.parametrize("cipher", [AesGcm(KEY32), Seeded(KEY32)])
def test_a_value_moved_to_another_key_does_not_open(cipher: AesGcm | Seeded) -> None:
    sealed = cipher.seal(b"value", PLACE)

    with pytest.raises(DecryptionFailed, match="cipher: message authentication failed"):
        cipher.open(sealed, b"/registry/ex.io/foos/default/f2")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"short", "the stored data was shorter than the required size"),
        (bytes(16), "the stored data was shorter than the required size"),
        (bytes(17), "the stored data is not a multiple of the block size"),
        (oracles.cbc_seal(KEY32, bytes(16), b"x")[:16] + bytes(16), "PKCS7|padding"),
    ],
)
def test_aescbc_refuses_what_it_cannot_have_written(data: bytes, told: str) -> None:
    with pytest.raises(DecryptionFailed, match=told):
        AesCbc(KEY32).open(data, PLACE)


@given(st.binary(max_size=120))
def test_rubbish_is_refused_and_nothing_else_is_raised(data: bytes) -> None:
    for cipher in (AesCbc(KEY32), AesGcm(KEY32), Secretbox(KEY32), Seeded(KEY32)):
        try:
            cipher.open(data, PLACE)
        except DecryptionFailed:
            continue
        assert isinstance(cipher, AesCbc)  # not authenticated: one in 256 looks padded
