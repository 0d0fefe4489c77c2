"""Keys that sign and verify tokens: RSA and elliptic curves, from PEM and JWK.

``issuer.py`` and ``oidc/issuer.py`` import it with the first token that needs a key, because
importing ``cryptography`` takes half as long as a server's start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from instar.kube.api.encoding.pem import blocks
from instar.server.identity.jwt import (
    Jwt,
    append_signature,
    decode_base64url,
    encode_base64url,
    text_of,
    unsigned,
)

Private = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
Public = ec.EllipticCurvePublicKey | rsa.RSAPublicKey
_HASHES: dict[str, type[hashes.HashAlgorithm]] = {
    "256": hashes.SHA256,
    "384": hashes.SHA384,
    "512": hashes.SHA512,
}
_CURVES: dict[str, tuple[str, str, type[ec.EllipticCurve]]] = {
    "secp256r1": ("ES256", "P-256", ec.SECP256R1),
    "secp384r1": ("ES384", "P-384", ec.SECP384R1),
    "secp521r1": ("ES512", "P-521", ec.SECP521R1),
}
_LEAST_RSA_BITS = 1024
_MOST_KEYS = 256


class InvalidKey(ValueError):
    """A key that cannot be read or used; ``str()`` is one line."""


class VerifyingKey(NamedTuple):
    """A public key, with its key ID and algorithms."""

    id: str
    key: Public

    @property
    def algorithm(self) -> str:
        """The algorithm this server signs with by such a key."""
        return _algorithm(self.key)

    def verifies(self, token: Jwt) -> bool:
        return _verifies(self.key, token.algorithm, token.signed, token.signature)

    def jwk(self) -> dict[str, str]:
        """The key as the JWKS endpoint publishes it."""
        key = self.key
        if isinstance(key, rsa.RSAPublicKey):
            numbers = key.public_numbers()
            shown = {"n": _number(numbers.n), "e": _number(numbers.e)}
            return {"use": "sig", "kty": "RSA", "kid": self.id, "alg": self.algorithm, **shown}
        point, size = key.public_numbers(), (key.key_size + 7) // 8
        return {
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": _CURVES[key.curve.name][1],
            "alg": self.algorithm,
            "x": encode_base64url(point.x.to_bytes(size, "big")),
            "y": encode_base64url(point.y.to_bytes(size, "big")),
        }


class SigningKey:
    """Private key that signs ServiceAccount tokens."""

    def __init__(self, key: Private) -> None:
        self._key = key
        self.public = _with_key_id(key.public_key())

    def token(self, claims: dict[str, Any]) -> str:
        algorithm = self.public.algorithm
        content = unsigned({"alg": algorithm, "kid": self.public.id}, claims)
        return append_signature(content, _signature(self._key, algorithm, content))


def signing_key(pem: bytes) -> SigningKey:
    for block in blocks(pem):
        if block.type.endswith(b"PRIVATE KEY"):
            return SigningKey(_private(pem[block.start : block.end]))
    raise InvalidKey("there is no private key in it")


def verifying_keys(pem: bytes) -> list[VerifyingKey]:
    """All keys in a file: public keys, and those of private keys and certificates."""
    found = list(_public_keys(pem))
    if not found:
        raise InvalidKey("there is no key or certificate in it")
    return [_with_key_id(key) for key in found]


def _public_keys(pem: bytes) -> Iterator[Public]:
    for block in blocks(pem):
        text = pem[block.start : block.end]
        if block.type.endswith(b"PRIVATE KEY"):
            yield _private(text).public_key()
            continue
        try:
            if block.type == b"CERTIFICATE":
                key: object = x509.load_pem_x509_certificate(text).public_key()
            elif block.type.endswith(b"PUBLIC KEY"):
                key = load_pem_public_key(text)
            else:
                continue
        except (ValueError, UnsupportedAlgorithm) as error:
            raise InvalidKey(f"a key cannot be read: {error}") from error
        yield _usable(key)


def _private(text: bytes) -> Private:
    try:
        key = load_pem_private_key(text, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InvalidKey(f"a private key cannot be read: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise InvalidKey("a private key is neither RSA nor ECDSA")
    _usable(key.public_key())
    return key


def _usable(key: object) -> Public:
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < _LEAST_RSA_BITS:
            raise InvalidKey(f"an RSA key has only {key.key_size} bits")
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return key
    raise InvalidKey("a key is neither RSA nor ECDSA on P-256, P-384 or P-521")


def _with_key_id(key: Public) -> VerifyingKey:
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return VerifyingKey(encode_base64url(hashlib.sha256(der).digest()), key)


def _algorithm(key: Public) -> str:
    return "RS256" if isinstance(key, rsa.RSAPublicKey) else _CURVES[key.curve.name][0]


# --- keys of other issuers ------------------------------------------------------------------------


def keys_of_jwks(document: Any) -> list[VerifyingKey]:
    """The signing keys of a JWKS; unknown ones are left out, as in kube-apiserver."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise InvalidKey("the answer is no JWKS: it has no list of keys")
    return list(_readable(listed[:_MOST_KEYS]))


def _readable(listed: Iterable[Any]) -> Iterator[VerifyingKey]:
    for item in listed:
        if not isinstance(item, dict) or item.get("use") not in (None, "", "sig"):
            continue
        try:
            yield VerifyingKey(text_of(item.get("kid")), _of_jwk(item))
        except ValueError:
            continue


def _of_jwk(item: dict[str, Any]) -> Public:
    def number(name: str) -> int:
        return int.from_bytes(decode_base64url(text_of(item.get(name))), "big")

    if item.get("kty") == "RSA":
        return _usable(rsa.RSAPublicNumbers(number("e"), number("n")).public_key())
    for _, name, curve in _CURVES.values():
        if item.get("kty") == "EC" and item.get("crv") == name:
            return ec.EllipticCurvePublicNumbers(number("x"), number("y"), curve()).public_key()
    raise InvalidKey("a key of an unknown kind")


# --- signatures ---------------------------------------------------------------------------------


def _signature(key: Private, algorithm: str, content: bytes) -> bytes:
    digest = _HASHES[algorithm[2:]]()
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(content, padding.PKCS1v15(), digest)
    size = (key.key_size + 7) // 8
    r, s = decode_dss_signature(key.sign(content, ec.ECDSA(digest)))
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def _verifies(key: Public, algorithm: str, content: bytes, signature: bytes) -> bool:
    family, digest = algorithm[:2], _HASHES.get(algorithm[2:])
    if digest is None:
        return False
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            size = (key.key_size + 7) // 8
            if _CURVES[key.curve.name][0] != algorithm or len(signature) != 2 * size:
                return False
            r, s = (int.from_bytes(part, "big") for part in (signature[:size], signature[size:]))
            key.verify(encode_dss_signature(r, s), content, ec.ECDSA(digest()))
        elif family == "RS":
            key.verify(signature, content, padding.PKCS1v15(), digest())
        elif family == "PS":
            salted = padding.PSS(padding.MGF1(digest()), padding.PSS.DIGEST_LENGTH)
            key.verify(signature, content, salted, digest())
        else:
            return False
    except (InvalidSignature, ValueError):
        return False
    return True


def _number(value: int) -> str:
    return encode_base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))
