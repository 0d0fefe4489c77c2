"""Validates ``spec.conversion`` of a CRD (internal form): strategy, webhook client, review
versions.

Called by ``crd.py``, with the internal form of ``kube/api/crd_codec.py``; the rules of webhook
clients are also used for admission webhooks (``kube/builtin_rules/admission.py``).
"""

from __future__ import annotations

from instar.base.field_errors import (
    FieldError,
    child,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1035_label, dns1123_subdomain
from instar.kube.crds.validation.ca_bundle import ca_bundle_problem
from instar.kube.crds.validation.go_url import parse_url

KNOWN_REVIEWS = ("v1", "v1beta1")
_STRATEGIES = ("None", "Webhook")
_WANTED_URL = "; desired format: https://host[/path]"
_NOT_FOR_NONE = "should not be set when strategy is not set to Webhook"


def conversion_errors(
    conversion: Object | None, path: str, *, known_review: bool, valid_bundle: bool
) -> list[FieldError]:
    """Return the errors; ``known_review`` and ``valid_bundle`` tell whether those two rules
    apply to this write."""
    if conversion is None:
        return []
    errors = _strategy(conversion.get("strategy", ""), child(path, "strategy"))
    client, reviews = (
        conversion.get("webhookClientConfig"),
        conversion.get("conversionReviewVersions") or [],
    )
    client_path = child(path, "webhookClientConfig")
    review_path = child(path, "conversionReviewVersions")
    if conversion.get("strategy") == "Webhook":
        errors += _client(client, client_path, valid_bundle)
        return errors + review_version_errors(reviews, review_path, known_review)
    if client is not None:
        errors.append(forbidden(client_path, _NOT_FOR_NONE))
    if reviews:
        errors.append(forbidden(review_path, _NOT_FOR_NONE))
    return errors


def _strategy(strategy: str, path: str) -> list[FieldError]:
    if not strategy:
        return [required(path)]
    return [] if strategy in _STRATEGIES else [not_supported(path, strategy, _STRATEGIES)]


def _client(client: Object | None, path: str, valid_bundle: bool) -> list[FieldError]:
    if client is None:
        return [required(path, "required when strategy is set to Webhook")]
    return client_errors(client, path, valid_bundle=valid_bundle)


def client_errors(client: Object, path: str, *, valid_bundle: bool) -> list[FieldError]:
    """Return the errors of a webhook client configuration (URL, service, CA bundle)."""
    url, service = client.get("url"), client.get("service")
    errors: list[FieldError] = []
    if (url is None) == (service is None):
        errors.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        errors += _url(url, child(path, "url"))
    elif service is not None:
        errors += _service(service, child(path, "service"))
    bundle = client.get("caBundle") or ""
    problem = ca_bundle_problem(bundle) if valid_bundle else None
    if problem is not None:
        errors.append(invalid(child(path, "caBundle"), bundle, problem))
    return errors


def review_version_errors(versions: list[str], path: str, known: bool) -> list[FieldError]:
    if not versions:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for position, version in enumerate(versions):
        at = index(path, position)
        if version in seen:
            errors.append(invalid(at, version, "duplicate version"))
            continue
        seen.add(version)
        errors += [invalid(at, version, text) for text in dns1035_label(version)]
    if known and not seen.intersection(KNOWN_REVIEWS):
        text = f"must include at least one of {', '.join(KNOWN_REVIEWS)}"
        errors.append(invalid(path, versions, text))
    return errors


def _url(text: str, path: str) -> list[FieldError]:
    parts = parse_url(text)
    if isinstance(parts, str):
        return [required(path, f"url must be a valid URL: {parts}{_WANTED_URL}")]
    errors: list[FieldError] = []
    if parts.scheme != "https":
        detail = f"'https' is the only allowed URL scheme{_WANTED_URL}"
        errors.append(invalid(path, parts.scheme, detail))
    if not parts.host:
        errors.append(invalid(path, "", f"host must be specified{_WANTED_URL}"))
    if parts.user is not None:
        errors.append(invalid(path, parts.user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def _service(service: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    # Upstream swaps name and namespace in these calls; clients see its paths.
    if not service.get("namespace"):
        errors.append(required(child(path, "name")))
    if not service.get("name"):
        errors.append(required(child(path, "namespace")))
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid(child(path, "port"), port, text))
    return errors + _service_path(service.get("path") or "", child(path, "path"))


def _service_path(text: str, path: str) -> list[FieldError]:
    if text in ("", "/"):
        return []
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    problems = [] if text.startswith("/") else ["must start with a '/'"]
    # The first character is dropped whatever it is, as upstream does.
    for position, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            problems.append(f"segment[{position}] may not be empty")
            continue
        problems += [f"segment[{position}]: {found}" for found in dns1123_subdomain(segment)]
    return [invalid(path, text, problem) for problem in problems]
