"""Admission in Python: functions that check or change objects before they are stored.

    admission = Admission("example.com")

    @admission.validate("widgets", versions=["v1"])
    def size_is_positive(widget):
        if widget["spec"]["size"] < 1:
            raise Refused("spec.size must be positive")

An ``Admission`` is served by ``instar webhook`` (``asgi.py`` does the HTTP), run by
``instar serve --admission-module`` and checked by ``instar check --admission``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json
from instar.kube.api.string_rules import dns1123_subdomain
from instar.tools.sdk.errors import ConversionError, ConverterDefinitionError
from instar.tools.sdk.typed import Model, model_of

Handler = Callable[..., Any]
MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
_WRITES = ("CREATE", "UPDATE")
_COMMON_FIELDS = ("apiVersion", "kind", "metadata")
_GIVEN = ("old", "request", "warn")


class Refused(Exception):
    """Raised by a handler to deny the request with this message."""

    def __init__(self, message: str, *, code: int = 403, reason: str = "Forbidden") -> None:
        super().__init__(message)
        self.message, self.code, self.reason = message, code, reason


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """The result of a handler."""

    obj: Object | None
    """As a mutator leaves it."""
    refusal: Refused | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class AdmissionHandler:
    """One decorated function, which becomes one webhook."""

    name: str
    function: Handler
    mutating: bool
    document: Object
    """The webhook but for its ``clientConfig``."""
    model: Model | None = None
    wants: frozenset[str] = frozenset()

    def run(self, request: Object) -> HandlerResult:
        """Run the handler on an AdmissionRequest, which is not changed. Exceptions other than
        ``Refused`` are bugs of the handler and propagate to the caller.
        """
        deleting = request.get("operation") == "DELETE"
        given = request.get("oldObject") if deleting else request.get("object")
        obj: Object = copy_json(given) if isinstance(given, dict) else {}
        warnings: list[str] = []
        extras: dict[str, Any] = {
            "old": copy_json(request.get("oldObject")),
            "request": request,
            "warn": warnings.append,
        }
        wanted = {name: extras[name] for name in self.wants}
        try:
            result = self.function(self._as_model(obj), **wanted)
        except Refused as refusal:
            return HandlerResult(None, refusal, tuple(warnings))
        except ConversionError as error:
            misfit = Refused(str(error), code=422, reason="Invalid")
            return HandlerResult(None, misfit, tuple(warnings))
        made = self._object_after(obj, result) if self.mutating and not deleting else None
        return HandlerResult(made, None, tuple(warnings))

    def _as_model(self, obj: Object) -> Any:
        return obj if self.model is None else self.model.load(obj)

    def _object_after(self, obj: Object, result: Any) -> Object:
        """Return the object after the handler. A result of None means that the dict was changed in
        place; a returned model replaces all of the object's content.
        """
        if result is None:
            if self.model is not None:
                raise TypeError(f"{self.name} works on a model and must return one")
            return obj
        if self.model is None:
            if not isinstance(result, dict):
                raise TypeError(f"{self.name} returned a {type(result).__name__}, not an object")
            return result
        frame = {name: obj[name] for name in _COMMON_FIELDS if name in obj}
        return {**frame, **self.model.write(result)}


@dataclass(slots=True, eq=False)
class Admission:
    """Handlers for the resources of one group; the empty group is the core group."""

    group: str
    name: str = ""
    """Of the configurations; the group's if none is given."""
    handlers: list[AdmissionHandler] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.group and dns1123_subdomain(self.group):
            raise ConverterDefinitionError(f"{self.group!r} cannot be the name of an API group")
        if self.name and dns1123_subdomain(self.name):
            raise ConverterDefinitionError(f"{self.name!r} cannot be the name of a configuration")

    @property
    def _domain(self) -> str:
        """Return the group for names; the core group is "core"."""
        return self.group or "core"

    def validate(
        self,
        resource: str,
        *,
        versions: Sequence[str] = ("*",),
        operations: Sequence[str] = _WRITES,
        model: type[Any] | None = None,
        **webhook: Any,
    ) -> Callable[[Handler], Handler]:
        """Register a validating handler. It gets the object (for a delete, the deleted object) and
        may raise ``Refused``. It gets ``old``, ``request`` and ``warn`` if it has parameters of
        these names. ``webhook`` holds further fields of the webhook, such as ``failurePolicy``.
        """
        return self._decorator(False, resource, versions, operations, model, webhook)

    def mutate(
        self,
        resource: str,
        *,
        versions: Sequence[str] = ("*",),
        operations: Sequence[str] = _WRITES,
        model: type[Any] | None = None,
        **webhook: Any,
    ) -> Callable[[Handler], Handler]:
        """Register a mutating handler. It changes the object in place, or returns the new
        object.
        """
        return self._decorator(True, resource, versions, operations, model, webhook)

    def configurations(self, client_config: Callable[[str], Object]) -> list[Object]:
        """Return the webhook configurations: one object per kind of webhook. ``client_config``
        returns the clientConfig for a path.
        """
        made = []
        for kind, mutating in ((MUTATING, True), (VALIDATING, False)):
            webhooks = [
                {**each.document, "clientConfig": client_config(path_of(each.name))}
                for each in self.handlers
                if each.mutating is mutating
            ]
            if webhooks:
                made.append(
                    {
                        "apiVersion": "admissionregistration.k8s.io/v1",
                        "kind": kind,
                        "metadata": {"name": self.name or self._domain},
                        "webhooks": webhooks,
                    }
                )
        return made

    def handler(self, name: str) -> AdmissionHandler | None:
        return next((each for each in self.handlers if each.name == name), None)

    def _decorator(
        self,
        mutating: bool,
        resource: str,
        versions: Sequence[str],
        operations: Sequence[str],
        model: type[Any] | None,
        webhook: Mapping[str, Any],
    ) -> Callable[[Handler], Handler]:
        def decorate(function: Handler) -> Handler:
            plural = resource.partition("/")[0]
            short = function.__name__.strip("_").replace("_", "-").lower()
            name = f"{short}.{plural}.{self._domain}"
            self._check(name)
            rule = {
                "apiGroups": [self.group],
                "apiVersions": list(versions),
                "operations": list(operations),
                "resources": [resource],
            }
            document = {
                "name": name,
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1", "v1beta1"],
                **webhook,
            }
            made = AdmissionHandler(
                name,
                function,
                mutating,
                document,
                None if model is None else model_of(model),
                _parameters_of(function),
            )
            self.handlers.append(made)
            return function

        return decorate

    def _check(self, name: str) -> None:
        if dns1123_subdomain(name):
            raise ConverterDefinitionError(f"{name!r} cannot be the name of a webhook")
        if self.handler(name) is not None:
            raise ConverterDefinitionError(f"there are two handlers called {name}")


def path_of(webhook: str) -> str:
    """Return the URL path of a webhook."""
    return f"/admission/{webhook}"


def _parameters_of(function: Handler) -> frozenset[str]:
    parameters: Iterable[str] = list(inspect.signature(function).parameters)[1:]
    unknown = [name for name in parameters if name not in _GIVEN]
    if unknown:
        raise ConverterDefinitionError(
            f"{function.__name__} wants {', '.join(unknown)}; a handler gets the object, and "
            f"{', '.join(_GIVEN)} if it names them"
        )
    return frozenset(parameters)
