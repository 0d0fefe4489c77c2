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


def response_form(request: Request, offer: Offer = Offer.CUSTOM) -> ResponseFormat:
    """Raises ``NotAcceptable`` when no clause can be met."""
    accept = request.header(b"accept")
    pretty = _wants_pretty(request)
    if accept in ("", "*/*", JSON) and not pretty:
        return PLAIN
    form = _negotiated(accept, False, offer)
    if form is None:
        raise unacceptable(accept, offer)
    if pretty and form.media == JSON:
        return ResponseFormat(form.media, form.transform, form.version, pretty=True)
    return form


def unacceptable(accept: str, offer: Offer) -> NotAcceptable:
    """Built-in kinds have the message of kube-apiserver's router, custom resources another."""
    known = any(clause.media in (JSON, YAML, PROTOBUF, "*/*") for clause in clauses(accept))
    if offer is Offer.BUILTIN and not known:
        text = f"406: Not Acceptable\n\nAvailable representations: {ACCEPTED}"
        return NotAcceptable(text, details={})
    return NotAcceptable(f"only the following media types are accepted: {ACCEPTED}")


def watch_form(request: Request, offer: Offer = Offer.CUSTOM) -> ResponseFormat:
    """The format of a watch: JSON lines, or protobuf frames. Raises ``NotAcceptable``."""
    form = _negotiated(request.header(b"accept"), True, offer)
    if form is None:
        accepted = ACCEPTED if _only_protobuf(request.header(b"accept")) else _STREAMS
        raise NotAcceptable(f"only the following media types are accepted: {accepted}")
    return form


def _only_protobuf(accept: str) -> bool:
    return all(clause.media == PROTOBUF for clause in clauses(accept))


def error_form(request: Request) -> ResponseFormat:
    """The format of an error: the accepted one if it is offered, else JSON."""
    for clause in clauses(request.header(b"accept")):
        if clause.media in (JSON, YAML, PROTOBUF):
            impossible = clause.media == PROTOBUF and clause.get("as") not in ("", *_PARTIALS)
            media = JSON if impossible else clause.media
            return ResponseFormat(media, pretty=_wants_pretty(request))
    return ResponseFormat(pretty=_wants_pretty(request))


def _wants_pretty(request: Request) -> bool:
    asked = request.one("pretty") if request.query else ""
    if asked:
        return asked in _TRUE
    return request.headers.get(b"user-agent", b"").startswith(_BROWSERS)


def _negotiated(accept: str, watch: bool, offer: Offer) -> ResponseFormat | None:
    """Parse the header, or take the cached result: clients send the same one each time."""
    find = _known_form if len(accept) <= _LONGEST_KEPT else _found_form
    return find(accept, watch, offer)


def _found_form(accept: str, watch: bool, offer: Offer) -> ResponseFormat | None:
    if not accept:
        return PLAIN
    for clause in clauses(accept):
        form = _form_for(clause, watch, offer)
        if form is not None:
            return form
    return None


def _form_for(clause: _Clause, watch: bool, offer: Offer) -> ResponseFormat | None:
    transform = clause.get("as")
    media = _media_for(clause, transform, offer)
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


def _media_for(clause: _Clause, transform: str, offer: Offer) -> str:
    """The media type for a clause; empty if the endpoint does not offer it."""
    if clause.media == "*/*" or (clause.media == "application/*" and offer is Offer.CUSTOM):
        return JSON
    if clause.media in (JSON, YAML):
        return clause.media
    binary = transform in _PARTIALS or (offer is Offer.BUILTIN and not transform)
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


def body_media(content_type: str) -> str:
    """JSON, YAML or protobuf; a missing header means JSON."""
    if content_type == JSON:
        return JSON
    media = content_type.partition(";")[0].strip().lower()
    if media in ("", JSON):
        return JSON
    if media in (YAML, PROTOBUF):
        return media
    raise unknown_format()


def unknown_format() -> UnsupportedMediaType:
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ACCEPTED
    )


def patch_type(content_type: str, accepted: tuple[PatchType, ...], *, builtin: bool) -> PatchType:
    media = content_type.partition(";")[0].strip().lower()
    for known in accepted:
        if known == media:
            return known
    if builtin:
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
