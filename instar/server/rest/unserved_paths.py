"""Answers to paths where nothing is served, and to methods that a document does not support.

Called by ``server/app.py``. Below the built-in groups kube-apiserver's router sends a Status;
everywhere else the router sends a line of text. ``/apis`` and documents of groups answer any
method.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base.errors import ApiError, MethodNotAllowed, NotFound, method_not_allowed
from instar.server.registry.resources.serving import Serving
from instar.server.rest.request_attributes import ResourcePath

_READ_METHODS = ("GET", "HEAD")


def unserved(parts: list[str], is_builtin: Callable[[str], bool]) -> ApiError | None:
    """Return the refusal of a path; None where the answer is a line of text. ``is_builtin`` tells
    built-in groups."""
    match parts:
        case ["api" | "version", _, *_]:
            told = True
        case ["apis", group, _, *_]:
            told = is_builtin(group)
        case _:
            told = False
    if not told:
        return None
    return NotFound("the server could not find the requested resource", details={})


def refused_method(
    method: str, parts: list[str], is_builtin: Callable[[str], bool]
) -> ApiError | None:
    """Return the refusal of a method on a document's path; None if it is answered as a GET."""
    if method in _READ_METHODS:
        return None
    match parts:
        case ["api"] | ["api", "v1"] | ["version"]:
            told = True
        case ["apis", group, _]:
            told = is_builtin(group)
        case _:
            told = False
    return not_allowed() if told else None


def not_allowed() -> MethodNotAllowed:
    """The refusal of a method by kube-apiserver's router."""
    text = "the server does not allow this method on the requested resource"
    return MethodNotAllowed(text, details={})


def verb_not_allowed(serving: Serving, verb: str) -> MethodNotAllowed:
    """Built-in kinds have the message of kube-apiserver's router, custom resources another."""
    if serving.builtin:
        return not_allowed()
    return method_not_allowed(serving.group, serving.plural, verb)


def is_over_namespaces(path: ResourcePath, serving: Serving) -> bool:
    """Return whether a path names all objects of a namespaced resource, which only reads may
    use."""
    served = serving.served(path.version) is not None
    return served and serving.namespaced and not path.namespace and not path.name
