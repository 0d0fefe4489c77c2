"""Tokens of ServiceAccounts over HTTP: ``serviceaccounts/NAME/token``, and the issuer's documents.

``rest/subresources.py`` routes token requests here, ``server/app.py`` the OpenID documents by which
other services verify tokens. Tokens are made and verified in ``identity``; they are not stored.
"""

from __future__ import annotations

from datetime import UTC, datetime

from instar.base import errors
from instar.base.field_errors import invalid
from instar.base.json_values import Object
from instar.kube.api.encoding.json_text import encode
from instar.kube.api.names import GroupVersionKind
from instar.server.http.messages import Request, Response
from instar.server.identity.issuer import Issuer
from instar.server.identity.jwt import text_of
from instar.server.identity.service_accounts import BOUND, BoundObject, TokenRequestSpec
from instar.server.registry.resources.context import timestamp
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.subresources.admission import admit_posted_object
from instar.server.rest.bodies import typed_body
from instar.server.rest.negotiate import Offer, response_form
from instar.server.rest.options import write_options
from instar.server.rest.responses import typed_response
from instar.server.rest.subresource_call import SubresourceCall

_GROUP, _KIND = "authentication.k8s.io", "TokenRequest"
_DEFAULT_SECONDS = 3600
_LEAST_SECONDS, _MOST_SECONDS = 600, 2**32
_POD_SECONDS = 3607
"""The lifetime that kubelets request for pods; clients there may not reload the token."""
_YEAR_SECONDS = 365 * 24 * 3600
_PUBLIC = (b"cache-control", b"public, max-age=3600")


async def do_token(call: SubresourceCall) -> Response:
    """Answer a TokenRequest with a signed token."""
    request, target, issuer = call.request, call.target, call.issuer
    form = response_form(request, Offer.BUILTIN)
    options = write_options(request, "CreateOptions")
    wanted = await typed_body(request, f"{_GROUP}/v1", _KIND)
    entry = target.entry()
    if entry is None:
        await call.context.backend.consistent()
        entry = target.entry()
    if entry is None:
        _check_names(wanted, target.namespace, target.name)
        raise errors.not_found("", "serviceaccounts", target.name)
    account = entry.decode()["metadata"]
    kind = GroupVersionKind(_GROUP, "v1", _KIND)
    await admit_posted_object(call.context, target, wanted, options, "token", kind)
    _check_names(wanted, target.namespace, target.name)
    _check_uid(wanted, target.name, account["uid"])
    spec = _spec_with_defaults(wanted.get("spec") or {}, issuer)
    _check_seconds(spec["expirationSeconds"])
    bound = _bound_objects(call, spec.get("boundObjectRef"))
    if issuer.longest_seconds and spec["expirationSeconds"] > issuer.longest_seconds:
        request.warn(
            f"requested expiration of {spec['expirationSeconds']} seconds shortened to "
            f"{issuer.longest_seconds} seconds"
        )
        spec["expirationSeconds"] = issuer.longest_seconds
    wish = _token_spec(issuer, target.namespace, account, spec, bound)
    expires = datetime.fromtimestamp(int(issuer.now()) + spec["expirationSeconds"], UTC)
    answer: Object = {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {
            "name": target.name,
            "namespace": target.namespace,
            "uid": account["uid"],
            "creationTimestamp": call.context.timestamp(),
        },
        "spec": spec,
        "status": {"token": issuer.issue(wish), "expirationTimestamp": timestamp(expires)},
    }
    return typed_response(201, answer, form)


def _token_spec(
    issuer: Issuer, namespace: str, account: Object, spec: Object, bound: tuple[BoundObject, ...]
) -> TokenRequestSpec:
    seconds, audiences = spec["expirationSeconds"], tuple(spec["audiences"])
    of_pod = any(reference.claim == "pod" for reference in bound)
    own = set(audiences) <= set(issuer.audiences)
    if issuer.extends and of_pod and own and seconds == _POD_SECONDS:
        return TokenRequestSpec(
            namespace, account["name"], account["uid"], audiences, _YEAR_SECONDS, bound, seconds
        )
    return TokenRequestSpec(namespace, account["name"], account["uid"], audiences, seconds, bound)


def _spec_with_defaults(spec: Object, issuer: Issuer) -> Object:
    return {
        "audiences": spec.get("audiences") or list(issuer.audiences),
        "expirationSeconds": spec.get("expirationSeconds") or _DEFAULT_SECONDS,
        "boundObjectRef": spec.get("boundObjectRef"),
    }


def _check_names(wanted: Object, namespace: str, name: str) -> None:
    given, inside = _metadata_text(wanted, "name"), _metadata_text(wanted, "namespace")
    if inside and inside != namespace:
        raise errors.BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if given and given != name:
        text = "must match the service account name if specified"
        raise errors.invalid(_GROUP, _KIND, name, [invalid("metadata.name", given, text)])


def _metadata_text(wanted: Object, name: str) -> str:
    metadata = wanted.get("metadata")
    return text_of(metadata.get(name)) if isinstance(metadata, dict) else ""


def _check_uid(wanted: Object, name: str, uid: str) -> None:
    given = _metadata_text(wanted, "uid")
    if given and given != uid:
        raise errors.conflict(
            _GROUP,
            _KIND,
            name,
            f"the UID in the token request ({given}) does not match the UID of the service account "
            f"({uid})",
        )


def _check_seconds(seconds: int) -> None:
    text = ""
    if seconds < _LEAST_SECONDS:
        text = "may not specify a duration less than 10 minutes"
    elif seconds > _MOST_SECONDS:
        text = "may not specify a duration larger than 2^32 seconds"
    if text:
        wrong = invalid("spec.expirationSeconds", seconds, text)
        raise errors.invalid(_GROUP, _KIND, "", [wrong])


def _bound_objects(call: SubresourceCall, reference: Object | None) -> tuple[BoundObject, ...]:
    """Return the object that a token is bound to, and the node of a pod."""
    if reference is None:
        return ()
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    version = reference.get("apiVersion") or ""
    if version != "v1" or kind.lower() not in BOUND or kind not in ("Pod", "Secret", "Node"):
        group = version if "/" in version else f"/{version}"
        raise errors.BadRequest(f"cannot bind token to object of type {group}, Kind={kind}")
    claim = kind.lower()
    obj = _get_object(call, BOUND[claim], "" if kind == "Node" else call.target.namespace, name)
    uid = obj["metadata"]["uid"]
    given = reference.get("uid") or ""
    if given and given != uid:
        raise errors.conflict(
            "",
            kind,
            name,
            f"the UID in the bound object reference ({given}) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        )
    found = (BoundObject(claim, name, uid),)
    return found if claim != "pod" else (*found, *_node_of(call, obj))


def _node_of(call: SubresourceCall, pod: Object) -> tuple[BoundObject, ...]:
    spec, account = pod.get("spec") or {}, call.target.name
    if spec.get("serviceAccountName") != account:
        raise errors.BadRequest(
            f'cannot bind token for serviceaccount "{account}" to pod running with different '
            "serviceaccount name."
        )
    name = spec.get("nodeName")
    entry = _entry(call, "nodes", "", name) if name else None
    if name is None or entry is None:
        return ()
    return (BoundObject("node", name, entry.decode()["metadata"]["uid"]),)


def _entry(call: SubresourceCall, plural: str, namespace: str, name: str) -> CacheEntry | None:
    suffix = f"{namespace}/{name}" if namespace else name
    return call.catalog.builtin("", plural).objects.entries.get(suffix)


def _get_object(call: SubresourceCall, plural: str, namespace: str, name: str) -> Object:
    entry = _entry(call, plural, namespace, name)
    if entry is None:
        raise errors.not_found("", plural, name)
    return entry.decode()


class IssuerDocuments:
    """OpenID discovery and JWKS documents, by which other services verify this server's tokens."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._offered = issuer.names[0].startswith("https://")
        self.address = ""
        """Host and port of this server, once it listens."""

    def respond(self, request: Request) -> Response | None:
        if not self._offered or request.method not in ("GET", "HEAD"):
            return None
        match request.path.rstrip("/"):
            case "/.well-known/openid-configuration":
                document = self._issuer.discovery(f"https://{self.address}/openid/v1/jwks")
                return _document(document, b"application/json")
            case "/openid/v1/jwks":
                return _document(self._issuer.jwks(), b"application/jwk-set+json")
        return None


def _document(document: Object, media: bytes) -> Response:
    return Response(200, (encode(document),), [(b"content-type", media), _PUBLIC])
