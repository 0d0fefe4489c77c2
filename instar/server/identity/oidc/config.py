"""Reader of an ``AuthenticationConfiguration``: from a document to trusted issuers, or errors.

``access/oidc_setup.py`` calls it with the document of the file. An unknown field is an error,
because it may have been meant to restrict something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn
from urllib.parse import urlsplit

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import FieldError, child, duplicate, index, invalid, required
from instar.base.field_errors import messages as told

KIND = "AuthenticationConfiguration"
VERSIONS = tuple(f"apiserver.config.k8s.io/{name}" for name in ("v1", "v1beta1", "v1alpha1"))
ALGORITHMS = tuple(f"{kind}{size}" for kind in ("ES", "PS", "RS") for size in (256, 384, 512))
_MOST_ISSUERS = 64
_RESERVED_DOMAINS = ("k8s.io", "kubernetes.io")
_PREFIX_REQUIRED_TEXT = (
    "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
)
_EMAIL = "claims.email"
_VERIFIED = "claims.email_verified"


class InvalidAuthentication(ValueError):
    """A wrong configuration; ``str()`` is one line."""


@dataclass(frozen=True)
class ClaimMapping:
    """A claim with a prefix before its value, or an expression."""

    claim: str = ""
    prefix: str = ""
    expression: str = ""


@dataclass(frozen=True)
class ClaimRule:
    """A rule that the claims of a token must satisfy."""

    claim: str = ""
    required: str = ""
    expression: str = ""
    message: str = ""


@dataclass(frozen=True)
class TrustedIssuer:
    """One issuer of a configuration: where its keys are, and how claims become a user."""

    url: str
    audiences: tuple[str, ...]
    username: ClaimMapping
    groups: ClaimMapping | None = None
    uid: ClaimMapping | None = None
    extra: tuple[tuple[str, str], ...] = ()
    claim_rules: tuple[ClaimRule, ...] = ()
    user_rules: tuple[ClaimRule, ...] = ()
    discovery_url: str = ""
    authority: str = ""
    """CA certificates for the issuer's server, PEM; empty: the system's."""
    algorithms: tuple[str, ...] = ALGORITHMS


@dataclass(frozen=True)
class AnonymousRules:
    """Whether anonymous requests are allowed, and on which paths."""

    enabled: bool
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Authentication:
    """An authentication configuration: token issuers and anonymous access."""

    issuers: tuple[TrustedIssuer, ...]
    anonymous: AnonymousRules | None = None


def read_config(document: Any, own_issuers: Sequence[str]) -> Authentication:
    """Raises ``InvalidAuthentication``. ``own_issuers``: names of this server, which others may not
    use."""
    if not isinstance(document, dict):
        raise InvalidAuthentication("it is no object")
    if document.get("apiVersion") not in VERSIONS or document.get("kind") != KIND:
        raise InvalidAuthentication(f"expected kind {KIND} of {VERSIONS[0]}")
    reader = _Reader(document)
    issuers = [
        _issuer(each, index("jwt", position), reader)
        for position, each in enumerate(reader.objects(document, "", "jwt", _ISSUER_FIELDS))
    ]
    anonymous = _anonymous(document.get("anonymous"), reader)
    reader.done()
    found = [*_shared_errors(issuers), *reader.found]
    for position, issuer in enumerate(issuers):
        found += issuer_errors(issuer, index("jwt", position), own_issuers)
    if anonymous is not None and anonymous.paths and not anonymous.enabled:
        text = "enabled should be set to true when conditions are defined"
        found.append(invalid("anonymous.conditions", list(anonymous.paths), text))
    if found:
        raise InvalidAuthentication(told(found))
    return Authentication(tuple(issuers), anonymous)


_ISSUER_FIELDS = ("issuer", "claimValidationRules", "claimMappings", "userValidationRules")


class _Reader:
    """Takes members out of a document by name and type; other members are errors."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.unknown: list[str] = []
        self.found: list[FieldError] = []
        self._check(document, "", ("apiVersion", "kind", "jwt", "anonymous"))

    def _check(self, value: Mapping[str, Any], path: str, known: Iterable[str]) -> None:
        self.unknown += (child(path, str(name)) for name in value if name not in known)

    def object(
        self, of: Mapping[str, Any], path: str, name: str, known: Sequence[str]
    ) -> dict[str, Any] | None:
        value = of.get(name)
        where = child(path, name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.unfit(where, "an object")
        self._check(value, where, known)
        return value

    def objects(
        self, of: Mapping[str, Any], path: str, name: str, known: Sequence[str]
    ) -> list[dict[str, Any]]:
        values, where, fit = of.get(name) or [], child(path, name), []
        if not isinstance(values, list):
            self.unfit(where, "a list")
        for position, value in enumerate(values):
            if isinstance(value, dict):
                self._check(value, index(where, position), known)
                fit.append(value)
            else:
                self.unfit(index(where, position), "an object")
        return fit

    def text(self, of: Mapping[str, Any], path: str, name: str) -> str:
        value = of.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.unfit(child(path, name), "a string")
        return str(value)

    def texts(self, of: Mapping[str, Any], path: str, name: str) -> tuple[str, ...]:
        values = of.get(name) or []
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            self.unfit(child(path, name), "a list of strings")
        return tuple(values)

    def unfit(self, where: str, what: str) -> NoReturn:
        raise InvalidAuthentication(f"strict decoding error: {where} must be {what}")

    def done(self) -> None:
        if self.unknown:
            fields = ", ".join(f'unknown field "{name}"' for name in self.unknown)
            raise InvalidAuthentication(f"strict decoding error: {fields}")


def _issuer(value: dict[str, Any], path: str, reader: _Reader) -> TrustedIssuer:
    known = (
        *("url", "discoveryURL", "certificateAuthority", "audiences"),
        *("audienceMatchPolicy", "egressSelectorType"),
    )
    issuer, where = reader.object(value, path, "issuer", known) or {}, child(path, "issuer")
    audiences = reader.texts(issuer, where, "audiences")
    policy = reader.text(issuer, where, "audienceMatchPolicy")
    if policy not in ("", "MatchAny") or (len(audiences) > 1 and policy != "MatchAny"):
        text = "audienceMatchPolicy must be MatchAny for multiple audiences"
        reader.found.append(invalid(child(where, "audienceMatchPolicy"), policy, text))
    maps = reader.object(value, path, "claimMappings", ("username", "groups", "uid", "extra")) or {}
    place = child(path, "claimMappings")
    return TrustedIssuer(
        url=reader.text(issuer, where, "url"),
        audiences=audiences,
        username=_mapping(maps, place, "username", reader) or ClaimMapping(),
        groups=_mapping(maps, place, "groups", reader),
        uid=_mapping(maps, place, "uid", reader),
        extra=_extra(maps, place, reader),
        claim_rules=_rules(value, path, "claimValidationRules", reader),
        user_rules=_rules(value, path, "userValidationRules", reader),
        discovery_url=reader.text(issuer, where, "discoveryURL"),
        authority=reader.text(issuer, where, "certificateAuthority"),
    )


def _extra(maps: dict[str, Any], path: str, reader: _Reader) -> tuple[tuple[str, str], ...]:
    names = ("key", "valueExpression")
    return tuple(
        (reader.text(each, path, names[0]), reader.text(each, path, names[1]))
        for each in reader.objects(maps, path, "extra", names)
    )


def _mapping(maps: dict[str, Any], path: str, name: str, reader: _Reader) -> ClaimMapping | None:
    where = child(path, name)
    known = ("claim", "expression") if name == "uid" else ("claim", "prefix", "expression")
    value = reader.object(maps, path, name, known)
    if not value:
        return None
    names = ("claim", "prefix", "expression")
    found = ClaimMapping(*(reader.text(value, where, each) for each in names))
    if found.claim and found.expression:
        reader.found.append(invalid(where, "", "claim and expression can't both be set"))
    elif not found.claim and not found.expression:
        reader.found.append(required(where, "claim or expression is required"))
    elif found.claim and name != "uid" and value.get("prefix") is None:
        reader.found.append(required(child(where, "prefix"), _PREFIX_REQUIRED_TEXT))
    elif found.expression and value.get("prefix") is not None:
        text = "may not be specified when expression is set"
        reader.found.append(invalid(child(where, "prefix"), found.prefix, text))
    return found


def _rules(value: dict[str, Any], path: str, name: str, reader: _Reader) -> tuple[ClaimRule, ...]:
    of_user = ("expression", "message")
    known = of_user if name == "userValidationRules" else ("claim", "requiredValue", *of_user)
    rules = reader.objects(value, path, name, known)
    return tuple(
        _rule(each, index(child(path, name), position), reader)
        for position, each in enumerate(rules)
    )


def _rule(value: dict[str, Any], path: str, reader: _Reader) -> ClaimRule:
    names = ("claim", "requiredValue", "expression", "message")
    rule = ClaimRule(*(reader.text(value, path, each) for each in names))
    if rule.claim and rule.expression:
        reader.found.append(invalid(path, rule.claim, "claim and expression can't both be set"))
    elif not rule.claim and not rule.expression:
        reader.found.append(required(path, "claim or expression is required"))
    elif rule.claim and rule.message:
        text = "may not be specified when claim is set"
        reader.found.append(invalid(child(path, "message"), rule.message, text))
    elif rule.expression and rule.required:
        text = "may not be specified when expression is set"
        reader.found.append(invalid(child(path, "requiredValue"), rule.required, text))
    return rule


def _anonymous(value: Any, reader: _Reader) -> AnonymousRules | None:
    if value is None:
        return None
    found = reader.object({"anonymous": value}, "", "anonymous", ("enabled", "conditions")) or {}
    enabled, path = found.get("enabled", False), "anonymous.conditions"
    if not isinstance(enabled, bool):
        reader.unfit("anonymous.enabled", "true or false")
    conditions = reader.objects(found, "anonymous", "conditions", ("path",))
    paths = tuple(reader.text(each, path, "path") for each in conditions)
    if not all(paths):
        reader.found.append(required(child(path, "path")))
    return AnonymousRules(enabled, paths)


# --- values that have the right type and are wrong -----------------------------------------------


def _shared_errors(issuers: Sequence[TrustedIssuer]) -> Iterable[FieldError]:
    if len(issuers) > _MOST_ISSUERS:
        yield invalid("jwt", len(issuers), f"must have at most {_MOST_ISSUERS} items")
    for name in ("url", "discovery_url"):
        seen: set[str] = set()
        for position, issuer in enumerate(issuers):
            value = getattr(issuer, name)
            if value and value in seen:
                shown = "url" if name == "url" else "discoveryURL"
                yield duplicate(f"{index('jwt', position)}.issuer.{shown}", value)
            seen.add(value)


def issuer_errors(issuer: TrustedIssuer, path: str, own: Sequence[str]) -> Iterable[FieldError]:
    """Field errors of one issuer."""
    where = child(path, "issuer")
    yield from _url_errors(issuer.url, child(where, "url"))
    if issuer.url in own:
        text = f"URL must not overlap with disallowed issuers: [{' '.join(own)}]"
        yield invalid(child(where, "url"), issuer.url, text)
    if issuer.discovery_url:
        place = child(where, "discoveryURL")
        if issuer.discovery_url == issuer.url:
            yield invalid(place, issuer.discovery_url, "discoveryURL must be different from URL")
        yield from _url_errors(issuer.discovery_url, place)
    if not issuer.audiences:
        place = child(where, "audiences")
        yield required(place, f"at least one {place} is required")
    for position, audience in enumerate(issuer.audiences):
        if not audience:
            yield required(index(child(where, "audiences"), position))
    if issuer.authority and "-----BEGIN CERTIFICATE-----" not in issuer.authority:
        text = "data does not contain any valid RSA or ECDSA certificates"
        yield invalid(child(where, "certificateAuthority"), "<omitted>", text)
    if not issuer.username.claim and not issuer.username.expression:
        yield required(child(path, "claimMappings.username"), "claim or expression is required")
    yield from _extra_errors(issuer, child(path, "claimMappings.extra"))
    yield from _email_errors(issuer, child(path, "claimMappings.username.expression"))


def _url_errors(text: str, where: str) -> Iterable[FieldError]:
    if not text:
        yield required(where, "URL is required")
        return
    try:
        parts = urlsplit(text)
        odd = not parts.hostname or parts.port == 0
    except ValueError:
        odd = True
    if odd:
        yield invalid(where, text, "URL cannot be parsed")
        return
    if parts.scheme != "https":
        yield invalid(where, text, "URL scheme must be https")
    if "@" in parts.netloc:
        yield invalid(where, text, "URL must not contain a username or password")
    if "?" in text:
        yield invalid(where, text, "URL must not contain a query")
    if "#" in text:
        yield invalid(where, text, "URL must not contain a fragment")


def _extra_errors(issuer: TrustedIssuer, where: str) -> Iterable[FieldError]:
    seen: set[str] = set()
    for position, (key, expression) in enumerate(issuer.extra):
        place = child(index(where, position), "key")
        domain, slash, name = key.partition("/")
        if not key:
            yield required(place)
        elif not (slash and domain and name):
            yield invalid(place, key, 'must be a domain-prefixed path (such as "acme.io/foo")')
        elif key != key.lower():
            yield invalid(place, key, "must be lowercase")
        elif any(domain == each or domain.endswith(f".{each}") for each in _RESERVED_DOMAINS):
            text = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
            yield invalid(place, key, text)
        elif key in seen:
            yield duplicate(place, key)
        seen.add(key)
        if not expression:
            yield required(child(index(where, position), "valueExpression"))


def _email_errors(issuer: TrustedIssuer, where: str) -> Iterable[FieldError]:
    """A username from ``email`` requires a check of ``email_verified``."""
    expression = issuer.username.expression
    if _EMAIL not in expression.replace(_VERIFIED, ""):
        return
    others = (*(each for _, each in issuer.extra), *(r.expression for r in issuer.claim_rules))
    if not any(_VERIFIED in each for each in (expression, *others)):
        text = (
            f"{_VERIFIED} must be used in claimMappings.username.expression or "
            "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when "
            f"{_EMAIL} is used in claimMappings.username.expression"
        )
        yield invalid(where, expression, text)
