"""Parses and validates an ``EncryptionConfiguration`` document into ``EncryptionRule`` values.

Called by ``server/lifecycle/encryption_setup.py``, which reads the file. The module works on plain
values, with upstream's error texts; ``providers.py`` makes ciphers of the rules.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from instar.base.config_shapes import ShapeMismatch, unknown_fields
from instar.base.field_errors import FieldError, child, index, invalid, required

API_VERSION, KIND = "apiserver.config.k8s.io/v1", "EncryptionConfiguration"
_AES_SIZES, _SECRETBOX_SIZES = (16, 24, 32), (32,)
_KEY_SIZES = {"aesgcm": _AES_SIZES, "aescbc": _AES_SIZES, "secretbox": _SECRETBOX_SIZES}
_PROVIDERS = ("kms", "aesgcm", "aescbc", "secretbox", "identity")
_RESOURCES_WITHOUT_API = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")
_ANY_RESOURCE = ("*", "*")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_KMS_SECONDS = 3.0


class GroupPlural(NamedTuple):
    """The resource a rule is about; ``*`` is any."""

    plural: str
    group: str

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Key(NamedTuple):
    """A named secret of a local provider."""

    name: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.name!r})"  # never show the secret


class Keyed(NamedTuple):
    """A provider with configured keys: ``aescbc``, ``aesgcm`` or ``secretbox``."""

    kind: str
    keys: tuple[Key, ...]


class Kms(NamedTuple):
    """A KMS v2 provider: the plugin's name, socket and deadline."""

    name: str
    socket: str
    timeout: float


class IdentityProvider(NamedTuple):
    """The ``identity`` provider: values stay plaintext."""


Provider = Keyed | Kms | IdentityProvider


class EncryptionRule(NamedTuple):
    """The providers for some resources, in order."""

    subjects: tuple[GroupPlural, ...]
    providers: tuple[Provider, ...]


class EncryptionConfigError(Exception):
    """An invalid configuration; ``str()`` is one line without secrets."""


def read(document: Any) -> tuple[EncryptionRule, ...]:
    """Return the rules of a document, in its order. Raises ``EncryptionConfigError``."""
    if not isinstance(document, dict):
        raise EncryptionConfigError("it is no object")
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if (api_version, kind) != (API_VERSION, KIND):
        raise EncryptionConfigError(f'no kind "{kind}" is registered for version "{api_version}"')
    _check_shape(document)
    found = _errors(document)
    if found:
        texts = list(dict.fromkeys(map(str, found)))
        raise EncryptionConfigError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    rules = tuple(map(_rule, document["resources"]))
    _check_masks(rules)
    return rules


def parse_subject(text: str) -> GroupPlural:
    plural, _, group = text.partition(".")
    return GroupPlural(plural, group)


# -- shape

_SHAPE: Any = {
    "apiVersion": str,
    "kind": str,
    "resources": [
        {
            "resources": [str],
            "providers": [
                {
                    "aesgcm": {"keys": [{"name": str, "secret": str}]},
                    "aescbc": {"keys": [{"name": str, "secret": str}]},
                    "secretbox": {"keys": [{"name": str, "secret": str}]},
                    "identity": {},
                    "kms": {
                        "apiVersion": str,
                        "name": str,
                        "cachesize": int,
                        "endpoint": str,
                        "timeout": str,
                    },
                }
            ],
        }
    ],
}


def _check_shape(document: Any) -> None:
    try:
        unknown = unknown_fields(document, _SHAPE)
    except ShapeMismatch as error:
        raise EncryptionConfigError(str(error)) from error
    if unknown:
        told = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise EncryptionConfigError(f"strict decoding error: {told}")


# -- checks


def _errors(document: dict[str, Any]) -> list[FieldError]:
    rules = document.get("resources") or []
    if not rules:
        return [required("resources", "at least one resources is required")]
    found: list[FieldError] = []
    kms_names: set[str] = set()
    for position, rule in enumerate(rules):
        rule = rule or {}
        at = index("resources", position)
        subjects, providers = rule.get("resources") or [], rule.get("providers") or []
        place = child(at, "resources")
        if not subjects:
            found.append(required(place, f"at least one {place} is required"))
        found += _overlaps(subjects, place)
        for number, subject in enumerate(subjects):
            found += _subject_errors(subject, index(place, number))
        place = child(at, "providers")
        if not providers:
            found.append(required(place, f"at least one {place} is required"))
        for number, provider in enumerate(providers):
            found += _provider_errors(provider or {}, index(place, number), kms_names)
    return found


def _overlaps(texts: Sequence[str], place: str) -> list[FieldError]:
    subjects = [parse_subject(text) for text in texts]
    found = []
    if len(set(subjects)) < len(subjects):
        detail = "the same resource cannot be specified multiple times"
        found.append(invalid(place, list(texts), detail))
    wide = {subject.group for subject in subjects if subject.plural == "*"}
    distinct = set(subjects)
    masked = len(distinct) > 1 and (
        _ANY_RESOURCE in distinct
        or any(subject.group in wide and subject.plural != "*" for subject in distinct)
    )
    if masked:
        detail = (
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is "
            "not allowed as they will be masked"
        )
        found.append(invalid(place, list(texts), detail))
    return found


def _subject_errors(text: str, place: str) -> list[FieldError]:
    subject = parse_subject(text)
    detail = ""
    if text.lower() != text:
        detail = "resource name should not contain capital letters"
    elif text == "*":
        detail = (
            "use '*.' to encrypt all the resources from core API group or *.* to encrypt all "
            "resources"
        )
    elif text in _RESOURCES_WITHOUT_API:
        detail = "resources which do not have REST API/s cannot be encrypted"
    elif subject.group == "events.k8s.io":
        detail = (
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use "
            "'events' instead in the config file"
        )
    elif subject.group == "extensions":
        detail = "'extensions' group has been removed and cannot be used for encryption"
    elif subject.group == "*" and subject.plural != "*":
        detail = "encrypting the same resource across groups is not supported"
    return [invalid(place, text, detail)] if detail else []


def _provider_errors(provider: dict[str, Any], place: str, kms_names: set[str]) -> list[FieldError]:
    given = [name for name in _PROVIDERS if provider.get(name) is not None]
    if not given:
        detail = (
            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, "
            "Secretbox, Identity"
        )
        return [invalid(place, "REDACTED", detail)]
    if len(given) > 1:
        detail = (
            "more than one provider specified in a single element, should split into different "
            "list elements"
        )
        return [invalid(place, "REDACTED", detail)]
    kind = given[0]
    if kind == "kms":
        return _kms_errors(provider["kms"], child(place, "kms"), kms_names)
    if kind == "identity":
        return []
    place = child(child(place, kind), "keys")
    keys = provider[kind].get("keys") or []
    if not keys:
        return [required(place, "at least one keys is required")]
    found: list[FieldError] = []
    for number, one in enumerate(keys):
        found += _key_errors(one or {}, index(place, number), _KEY_SIZES[kind])
    return found


def _key_errors(key: dict[str, Any], place: str, sizes: tuple[int, ...]) -> list[FieldError]:
    found = []
    if not key.get("name"):
        found.append(required(child(place, "name"), "name is a mandatory field for a key"))
    at = child(place, "secret")
    if not key.get("secret"):
        return [*found, required(at, "secret is a mandatory field for a key")]
    secret = _secret(key["secret"])
    if secret is None:
        return [*found, invalid(at, "REDACTED", "secrets must be base64 encoded")]
    if len(secret) not in sizes:
        wanted = " ".join(map(str, sizes))
        detail = (
            f"secret is not of the expected length, got {len(secret)}, expected one of [{wanted}]"
        )
        found.append(invalid(at, "REDACTED", detail))
    return found


def _kms_errors(kms: dict[str, Any], place: str, names: set[str]) -> list[FieldError]:
    found = []
    name, at = kms.get("name") or "", child(place, "name")
    if not name:
        found.append(required(at, "name is a mandatory field for a provider"))
    if ":" in name:
        found.append(invalid(at, name, f"invalid KMS provider name {name}, must not contain ':'"))
    if name in names:
        detail = f"duplicate KMS provider name {name}, names must be unique"
        found.append(invalid(at, name, detail))
    names.add(name)
    seconds = _seconds(kms.get("timeout"))
    if seconds is None or seconds <= 0:
        detail = "timeout should be a positive value"
        found.append(invalid(child(place, "timeout"), kms.get("timeout"), detail))
    found += _endpoint_errors(kms.get("endpoint") or "", child(place, "endpoint"))
    if kms.get("cachesize") is not None:
        at = child(place, "cachesize")
        found.append(invalid(at, kms["cachesize"], "cachesize is not supported in v2"))
    if kms.get("apiVersion") != "v2":
        given = kms.get("apiVersion") or "v1"
        detail = "KMS v1 is deprecated and not offered here, only v2 is supported"
        found.append(invalid(child(place, "apiVersion"), given, detail))
    return found


def _endpoint_errors(endpoint: str, place: str) -> list[FieldError]:
    if not endpoint:
        return [invalid(place, "", "endpoint is a mandatory field for a kms")]
    scheme = urlsplit(endpoint).scheme
    if scheme != "unix":
        detail = f'unsupported scheme "{scheme}" for KMS provider, only unix is supported'
        return [invalid(place, endpoint, detail)]
    return []


def _check_masks(rules: Sequence[EncryptionRule]) -> None:
    """Reject a rule that can never match because an earlier wildcard rule covers it."""
    seen: set[GroupPlural] = set()
    for rule in rules:
        for subject in rule.subjects:
            for mask in (GroupPlural("*", subject.group), GroupPlural("*", "*")):
                if mask in seen and mask != subject:
                    raise EncryptionConfigError(
                        f'resource "{subject}" is masked by earlier rule "{_subject_text(mask)}"'
                    )
        seen.update(rule.subjects)


def _subject_text(subject: GroupPlural) -> str:
    return f"{subject.plural}.{subject.group}"


# -- values of a checked document


def _rule(rule: dict[str, Any]) -> EncryptionRule:
    return EncryptionRule(
        tuple(map(parse_subject, rule["resources"])), tuple(map(_provider, rule["providers"]))
    )


def _provider(provider: dict[str, Any]) -> Provider:
    for kind in _KEY_SIZES:
        if provider.get(kind) is not None:
            keys = provider[kind]["keys"]
            return Keyed(
                kind, tuple(Key(one["name"], _secret(one["secret"]) or b"") for one in keys)
            )
    kms = provider.get("kms")
    if kms is None:
        return IdentityProvider()
    path = kms["endpoint"].removeprefix("unix:")
    # unix:///x is the file /x; unix:///@x is an abstract socket name of Linux.
    path = path.removeprefix("//")
    return Kms(kms["name"], path, _seconds(kms.get("timeout")) or _KMS_SECONDS)


def _secret(text: str) -> bytes | None:
    try:
        return b64decode("".join(text.split("\n")).replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return None


def _seconds(text: str | None) -> float | None:
    """Return the seconds of a Go duration: the default for None, None for an invalid one."""
    if text is None:
        return _KMS_SECONDS
    total, at = 0.0, 0
    while at < len(text) or not text:
        part = _DURATION_PART.match(text, at)
        if part is None:
            return None
        total += float(part[1]) * _SECONDS[part[2]]
        at = part.end()
    return total
