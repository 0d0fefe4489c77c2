"""Content negotiation: the response format by ``Accept``, the body format by ``Content-Type``.

Every handler in ``rest`` and ``endpoints`` calls it. Formats are written in ``responses.py``.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache

from instar.base.errors import NotAcceptable, UnsupportedMediaType
from instar.base.fast_dataclass import dataclass
from instar.kube.api.patch_types import PatchType
from instar.server.http.messages import Request

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
CBOR, CBOR_SEQUENCE = "application/cbor", "application/cbor-seq"
ACCEPTED = f"{JSON}, {YAML}, {PROTOBUF}"
_STREAMS = f"{JSON};stream=watch, {PROTOBUF};stream=watch"
_META_VERSIONS = ("v1", "v1beta1")
_PARTIALS = ("PartialObjectMetadata", "PartialObjectMetadataList")
_BROWSERS = (b"curl", b"Wget", b"Mozilla/5.0")
_LONGEST_KEPT = 256
"""Longest header with a cached result, in characters."""
_TRUE = ("1", "t", "T", "true", "TRUE", "True")


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """How to write a response: media type, and perhaps as a Table or partial metadata."""

    media: str = JSON
    transform: str = ""
    """``Table``, ``PartialObjectMetadata``, ``PartialObjectMetadataList`` or empty."""
    version: str = "v1"
    pretty: bool = False


PLAIN = ResponseFormat()


@dataclass(frozen=True, slots=True)
class _Clause:
    media: str
    parameters: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        return dict(self.parameters).get(name, "")


class Offer(Enum):
    """Which formats an endpoint offers."""

    CUSTOM = auto()
    """Custom resources: JSON and YAML; protobuf only for Tables and partial metadata."""
    BUILTIN = auto()
    """Built-in kinds: protobuf, too."""
    DOCUMENT = auto()
    """Discovery: as built-in kinds, but never CBOR."""


def response_form(request: Request, offer: Offer = Offer.CUSTOM) -> ResponseFormat:
    """Raises ``NotAcceptable`` when no clause can be met."""
    accept = request.header(b"accept")
    pretty = _wants_pretty(request)
    if accept in ("", "*/*", JSON) and not pretty:
        return PLAIN
    cbor = request.cbor and offer is not Offer.DOCUMENT
    form = _negotiated(accept, False, offer, cbor)
    if form is None:
        raise unacceptable(accept, offer, cbor=cbor)
    if pretty and form.media == JSON:
        return ResponseFormat(form.media, form.transform, form.version, pretty=True)
    return form


def unacceptable(accept: str, offer: Offer, *, cbor: bool = False) -> NotAcceptable:
    """Built-in kinds have the message of kube-apiserver's router, custom resources another."""
    offered = (JSON, YAML, PROTOBUF, "*/*", *((CBOR,) if cbor else ()))
    known = any(clause.media in offered for clause in clauses(accept))
    if offer is not Offer.CUSTOM and not known:
        text = f"406: Not Acceptable\n\nAvailable representations: {_accepted(cbor)}"
        return NotAcceptable(text, details={})
    return _none_but(_accepted(cbor))


def not_acceptable(request: Request) -> NotAcceptable:
    """The error where a known media type has a form that the endpoint does not offer."""
    return _none_but(_accepted(request.cbor))


def _none_but(accepted: str) -> NotAcceptable:
    return NotAcceptable(f"only the following media types are accepted: {accepted}")


def _accepted(cbor: bool) -> str:
    return f"{ACCEPTED}, {CBOR}" if cbor else ACCEPTED


def watch_form(request: Request, offer: Offer = Offer.CUSTOM) -> ResponseFormat:
    """The format of a watch: JSON lines, or protobuf frames. Raises ``NotAcceptable``."""
    accept, cbor = request.header(b"accept"), request.cbor
    form = _negotiated(accept, True, offer, cbor)
    if form is None:
        streams = f"{_STREAMS}, {CBOR_SEQUENCE}" if cbor else _STREAMS
        raise _none_but(_accepted(cbor) if _only_binary(accept, cbor) else streams)
    return form


def _only_binary(accept: str, cbor: bool) -> bool:
    binary = (PROTOBUF, CBOR, CBOR_SEQUENCE) if cbor else (PROTOBUF,)
    return all(clause.media in binary for clause in clauses(accept))


def error_form(request: Request) -> ResponseFormat:
    """The format of an error: the accepted one if it is offered, else JSON."""
    for clause in clauses(request.header(b"accept")):
        binary = clause.media == PROTOBUF or (clause.media == CBOR and request.cbor)
        if binary or clause.media in (JSON, YAML):
            impossible = binary and clause.get("as") not in ("", *_PARTIALS)
            media = JSON if impossible else clause.media
            return ResponseFormat(media, pretty=_wants_pretty(request))
    return ResponseFormat(pretty=_wants_pretty(request))


def _wants_pretty(request: Request) -> bool:
    asked = request.one("pretty") if request.query else ""
    if asked:
        return asked in _TRUE
    return request.headers.get(b"user-agent", b"").startswith(_BROWSERS)


def _negotiated(accept: str, watch: bool, offer: Offer, cbor: bool) -> ResponseFormat | None:
    """Parse the header, or take the cached result: clients send the same one each time."""
    find = _known_form if len(accept) <= _LONGEST_KEPT else _found_form
    return find(accept, watch, offer, cbor)


def _found_form(accept: str, watch: bool, offer: Offer, cbor: bool) -> ResponseFormat | None:
    if not accept:
        return PLAIN
    for clause in clauses(accept):
        form = _form_for(clause, watch, offer, cbor)
        if form is not None:
            return form
    return None


def _form_for(clause: _Clause, watch: bool, offer: Offer, cbor: bool) -> ResponseFormat | None:
    transform = clause.get("as")
    media = _media_for(clause, transform, offer, cbor)
    if media == YAML and watch:
        return None
    if not media or clause.get("stream") not in ("", "watch"):
        return None
    pretty = clause.get("pretty") == "1"
    if not transform:
        return ResponseFormat(media, pretty=pretty)
    known = transform in ("Table", *_PARTIALS)
    version = clause.get("v")
    if not known or clause.get("g") != "meta.k8s.io" or version not in _META_VERSIONS:
        return None
    return ResponseFormat(media, transform, version, pretty)


def _media_for(clause: _Clause, transform: str, offer: Offer, cbor: bool) -> str:
    """The media type for a clause; empty if the endpoint does not offer it."""
    if clause.media == "*/*" or (clause.media == "application/*" and offer is Offer.CUSTOM):
        return JSON
    if clause.media in (JSON, YAML):
        return clause.media
    if clause.media == CBOR and cbor:
        return "" if transform == "Table" else CBOR
    binary = transform in _PARTIALS or (offer is not Offer.CUSTOM and not transform)
    return PROTOBUF if clause.media == PROTOBUF and binary else ""


def clauses(accept: str) -> tuple[_Clause, ...]:
    """Clauses by decreasing quality, exact types before wildcards."""
    return _known_clauses(accept) if len(accept) <= _LONGEST_KEPT else _clauses(accept)


def _clauses(accept: str) -> tuple[_Clause, ...]:
    found: list[tuple[float, bool, int, _Clause]] = []
    for position, text in enumerate(accept.split(",")):
        media, *rest = (part.strip() for part in text.split(";"))
        parameters: dict[str, str] = {}
        for part in rest:
            name, _, value = part.partition("=")
            parameters[name.strip()] = value.strip().strip('"')
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        clause = _Clause(media, tuple(parameters.items()))
        found.append((-quality, "*" in media, position, clause))
    return tuple(clause for *_, clause in sorted(found, key=lambda item: item[:3]))


_known_form = lru_cache(maxsize=256)(_found_form)
_known_clauses = lru_cache(maxsize=256)(_clauses)


def body_media(request: Request) -> str:
    """JSON, YAML, protobuf or CBOR; a missing header means JSON."""
    content_type = request.header(b"content-type")
    if content_type == JSON:
        return JSON
    media = content_type.partition(";")[0].strip().lower()
    if media in ("", JSON):
        return JSON
    if media in (YAML, PROTOBUF) or (media == CBOR and request.cbor):
        return media
    raise unknown_format(cbor=request.cbor)


def unknown_format(*, cbor: bool = False) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + _accepted(cbor)
    )


def patch_type(request: Request, accepted: tuple[PatchType, ...], *, builtin: bool) -> PatchType:
    media = request.header(b"content-type").partition(";")[0].strip().lower()
    if request.cbor and PatchType.APPLY in accepted:
        accepted = (*accepted, PatchType.APPLY_CBOR)
    for known in accepted:
        if known == media:
            return known
    if builtin:
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
