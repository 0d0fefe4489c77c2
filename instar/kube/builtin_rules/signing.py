"""Validates CertificateSigningRequests: requests, approval conditions and issued certificates.

Called by ``server/registry/kinds/signing.py`` and by the plugin
``server/registry/admission/plugins/certificate_signing.py``. Both import this module only for the
first CertificateSigningRequest, because it imports ``cryptography``.
"""

from __future__ import annotations

import base64

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.x509 import (
    CertificateSigningRequest,
    load_pem_x509_certificate,
    load_pem_x509_csr,
)
from cryptography.x509.oid import NameOID

from instar.base.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.encoding.pem import blocks
from instar.kube.api.string_rules import dns1123_subdomain
from instar.kube.builtin_rules.basics import texts_at

APPROVED, DENIED = "Approved", "Denied"
_FINAL = (APPROVED, DENIED, "Failed")
_OPPOSITE = {APPROVED: DENIED, DENIED: APPROVED}
_ORGANIZATION = NameOID.ORGANIZATION_NAME
_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign",
    "data encipherment", "decipher only", "digital signature", "email protection", "encipher only",
    "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment",
    "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing",
    "timestamping",
)  # fmt: skip


def signing_request_errors(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    request, signer = spec.get("request"), spec.get("signerName", "")
    found: list[FieldError] = []
    problem = _request_problem(base64.b64decode(request or ""))
    if problem:
        found.append(invalid("spec.request", request, problem))
    usages = spec.get("usages") or []
    if not usages:
        found.append(required("spec.usages"))
    for position, usage in enumerate(usages):
        where = index("spec.usages", position)
        if usage not in _USAGES:
            found.append(not_supported(where, usage, _USAGES))
        if usage in usages[:position]:
            found.append(duplicate(where, usage))
    if signer == "kubernetes.io/legacy-unknown":
        text = "the legacy signerName is not allowed via this API version"
        found.append(invalid("spec.signerName", signer, text))
    else:
        found += _signer_errors(signer)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        found.append(invalid("spec.expirationSeconds", seconds, text))
    return found


def _request_problem(text: bytes) -> str:
    first = next(blocks(text), None)
    if first is None or first.type != b"CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        request = load_pem_x509_csr(text[first.start : first.end])
        valid = _is_signed(request)
    except (ValueError, UnsupportedAlgorithm):
        return "the certificate request cannot be parsed"
    return "" if valid else "the signature of the certificate request is wrong"


def _is_signed(request: CertificateSigningRequest) -> bool:
    """Return whether the key of the request signed it. Go accepts SHA-1 here, and the library's own
    answer is no."""
    if not isinstance(request.signature_hash_algorithm, SHA1):
        return request.is_signature_valid
    key, signature, signed = (
        request.public_key(),
        request.signature,
        request.tbs_certrequest_bytes,
    )
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, signed, padding.PKCS1v15(), SHA1())
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, signed, ec.ECDSA(SHA1()))
        else:
            return False
    except InvalidSignature:
        return False
    return True


def organizations(request: str) -> list[str]:
    """Return the organizations (groups) that the certificate request asks for; empty if it is
    unreadable."""
    try:
        subject = load_pem_x509_csr(base64.b64decode(request)).subject
    except (ValueError, UnsupportedAlgorithm):
        return []
    return [str(item.value) for item in subject.get_attributes_for_oid(_ORGANIZATION)]


# Approval and issuing -----------------------------------------------------------------------------


def conditions_of(obj: Object, type: str = "") -> list[Object]:
    """Return the conditions of one type, or all."""
    found = (obj.get("status") or {}).get("conditions") or []
    return [one for one in found if not type or one.get("type") == type]


def condition_errors(obj: Object, old: Object) -> list[FieldError]:
    """Check each condition and their combination; violations that the old object had are
    allowed."""
    both = bool(conditions_of(old, APPROVED) and conditions_of(old, DENIED))
    known = [one.get("type", "") for one in conditions_of(old)]
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, one in enumerate(conditions_of(obj)):
        where, type = index("status.conditions", position), one.get("type", "")
        if not type and "" not in known:
            found.append(required(f"{where}.type"))
        allowed = ["True"] if type in _FINAL else ["False", "True", "Unknown"]
        if not one.get("status"):
            found.append(required(f"{where}.status"))
        elif one["status"] not in allowed:
            found.append(not_supported(f"{where}.status", one["status"], allowed))
        if type in _OPPOSITE and _OPPOSITE[type] in seen and not both:
            text = "Approved and Denied conditions are mutually exclusive"
            found.append(invalid("status.conditions", type, text))
        if type in seen and len(known) == len(set(known)):
            found.append(duplicate(f"{where}.type", type))
        seen.add(type)
    return found


def outcome_errors(new: Object, old: Object, subresource: str) -> list[FieldError]:
    """Check that approval conditions change only through ``approval`` and the certificate is set
    only through ``status``, and that neither is removed."""
    found = condition_errors(new, old)
    before, after = ((obj.get("status") or {}).get("certificate") or "" for obj in (old, new))
    if after != before and not certificate_problem(before):
        problem = certificate_problem(after)
        if problem:
            found.append(invalid("status.certificate", "<certificate data>", problem))
    for type in _FINAL:
        if len(conditions_of(new, type)) < len(conditions_of(old, type)):
            found.append(_may_not("remove", type))
    for type in (APPROVED, DENIED) if subresource != "approval" else ():
        was, now = conditions_of(old, type), conditions_of(new, type)
        if len(now) > len(was):
            found.append(_may_not("add", type))
        elif len(now) == len(was) and now != was:
            found.append(_may_not("modify", type))
    if after != before and subresource != "status":
        found.append(forbidden("status.certificate", "updates may not set certificate content"))
    elif after != before and before:
        text = "updates may not modify existing certificate content"
        found.append(forbidden("status.certificate", text))
    return found


def _may_not(verb: str, type: str) -> FieldError:
    return forbidden("status.conditions", f'updates may not {verb} a condition of type "{type}"')


def certificate_problem(encoded: str) -> str:
    """Return why a text is not PEM certificates; empty if it is."""
    text = base64.b64decode(encoded)
    if not text:
        return ""
    found = list(blocks(text))
    for block in found:
        if block.type != b"CERTIFICATE":
            shown = block.type.decode(errors="replace")
            return f'only CERTIFICATE PEM blocks are allowed, found "{shown}"'
        if b":" in block.body:
            return "no PEM block headers are permitted"
        try:
            load_pem_x509_certificate(text[block.start : block.end])
        except ValueError:
            return "x509: malformed certificate"
    return "" if found else "must contain at least one CERTIFICATE PEM block"


def _signer_errors(signer: str) -> list[FieldError]:
    where = "spec.signerName"
    if not signer:
        return [required(where)]
    domain, slash, rest = signer.partition("/")
    if not slash or not rest:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(where, signer, text)]
    found = texts_at(where, domain, dns1123_subdomain(domain))
    if "." not in domain:
        found.append(
            invalid(
                where, signer, "should be a domain with at least two segments separated by dots"
            )
        )
    return found + texts_at(where, rest, dns1123_subdomain(rest.lower()))
