"""``Converter``, which authors register conversions with, and ``BuiltConverter``, which runs
them.

Public through ``instar.sdk``. ``build()`` finds a path between every two versions and refuses if
there is none. The author's code sees one object at a time, without versions, kinds or metadata.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from instar.base.json_values import Object, copy_json
from instar.kube.api.names import GroupVersionKind, by_priority
from instar.tools.sdk.errors import ConversionError, ConverterDefinitionError, IncompleteConverter
from instar.tools.sdk.graph import Pair, find_routes, missing_pairs
from instar.tools.sdk.rules import ConversionRule
from instar.tools.sdk.ruleset import Loss, RuleSet
from instar.tools.sdk.typed import model_of
from instar.wire.conversion import contract
from instar.wire.conversion.failure import ConversionFailed, FailureType

Step = Callable[[Object], Object | None]


class Converter:
    """Collects the conversions of one kind.

    ``versions`` may be left out: they are then the ones the steps mention. With ``hub`` every
    version must have a step to and from it; without, any connected set of steps will do.
    """

    def __init__(
        self, kind: str, *, group: str, hub: str | None = None, versions: Sequence[str] = ()
    ) -> None:
        self.kind, self.group, self.hub = kind, group, hub
        self._versions: dict[str, None] = dict.fromkeys([*versions, *([hub] if hub else [])])
        self._steps: dict[Pair, Step] = {}
        self._losses: list[Loss] = []
        self._trusted: set[Pair] = set()
        self._models: dict[str, type[Any]] = {}

    def convert(self, source: str, target: str) -> Callable[[Step], Step]:
        """Register a function that converts an object at ``source`` into one at ``target``
        (decorator).

        It gets its own copy, may change and return it, or return a new one; ``apiVersion``,
        ``kind`` and everything in ``metadata`` but labels and annotations are set for it.
        """

        def register(function: Step) -> Step:
            self._add(source, target, function)
            return function

        return register

    def convert_typed(
        self, source: str, target: str
    ) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        """Like ``convert``, on the models given to ``model`` for the two versions."""

        def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            for version in (source, target):
                if version not in self._models:
                    raise ConverterDefinitionError(f"no model for {version}: call model() first")
            self._add(source, target, self._typed_step(source, target, function))
            return function

        return register

    def model(self, version: str, cls: type[Any]) -> None:
        """Set the dataclass, pydantic or msgspec class of ``version``, for ``convert_typed``."""
        self._models[version] = cls
        self._versions.setdefault(version)

    def between(self, old: str, new: str, *, rules: Sequence[ConversionRule]) -> None:
        """Define both directions between two versions by one list of rules."""
        rule_set = RuleSet(old, new, rules)
        self._add(old, new, rule_set.there)
        self._add(new, old, rule_set.back)
        self._losses += rule_set.losses()
        if rule_set.leaves_metadata_alone:
            self._trusted |= {(old, new), (new, old)}

    def lossy(self, version: str, path: str, reason: str) -> None:
        """Declare that a field of ``version`` may be lost; ``instar check`` allows no other
        loss.
        """
        self._losses.append(Loss(version, path, reason))

    def build(self) -> BuiltConverter:
        """Return the complete converter. Raises ``IncompleteConverter`` with every pair of versions
        that has no path.
        """
        versions = by_priority(self._versions)
        if self.hub is not None:
            direct = [
                (source, target)
                for version in versions
                if version != self.hub
                for source, target in ((version, self.hub), (self.hub, version))
                if (source, target) not in self._steps
            ]
            if direct:
                raise IncompleteConverter(self.kind, direct)
        routes = find_routes(versions, self._steps)
        missing = missing_pairs(versions, routes)
        if missing:
            raise IncompleteConverter(self.kind, missing)
        if not self._steps:
            raise ConverterDefinitionError(f"the converter for {self.kind} has no conversions")
        steps = {
            pair: tuple((step[1], self._steps[step], step in self._trusted) for step in route)
            for pair, route in routes.items()
        }
        return BuiltConverter(self, versions, steps, tuple(self._losses))

    def _add(self, source: str, target: str, step: Step) -> None:
        if source == target:
            raise ConverterDefinitionError(f"{source} → {target} is not a conversion")
        if (source, target) in self._steps:
            raise ConverterDefinitionError(f"{source} → {target} is defined twice")
        if inspect.iscoroutinefunction(step):
            raise ConverterDefinitionError(
                f"{source} → {target}: a conversion must be an ordinary function; it depends on "
                "nothing but the object, so there is nothing to await"
            )
        self._versions.setdefault(source)
        self._versions.setdefault(target)
        self._steps[source, target] = step

    def _typed_step(self, source: str, target: str, function: Callable[[Any], Any]) -> Step:
        reads, writes = model_of(self._models[source]), model_of(self._models[target])

        def step(obj: Object) -> Object:
            result = writes.write(function(reads.load(obj)))
            return result if "metadata" in result else {**result, "metadata": obj["metadata"]}

        return step


class BuiltConverter:
    """A complete converter. Satisfies ``instar.wire.conversion.converter.Converter``."""

    def __init__(
        self,
        source: Converter,
        versions: Sequence[str],
        routes: Mapping[Pair, tuple[tuple[str, Step, bool], ...]],
        losses: tuple[Loss, ...],
    ) -> None:
        self.kind, self.group, self.hub = source.kind, source.group, source.hub
        self.versions = tuple(versions)
        self.losses = losses
        self._routes = {
            (self._api_version(start), self._api_version(end)): tuple(
                (self._api_version(version), step, trusted) for version, step, trusted in route
            )
            for (start, end), route in routes.items()
        }

    def _api_version(self, version: str) -> str:
        return f"{self.group}/{version}"

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        """Like ``convert_all``, for in-process use; fails with the errors of a webhook."""
        try:
            return self.convert_all(objects, api_version)
        except ConversionError as error:
            source = contract.source_of(objects[0]) if objects else GroupVersionKind("", "", "")
            raise ConversionFailed(
                f"conversion webhook for {source} failed: {error}",
                failure_type=FailureType.MALFORMED,
            ) from error

    def convert_all(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        """Return every object at ``api_version`` (``group/version``); the input is not changed."""
        return self.convert_owned(
            [obj if obj.get("apiVersion") == api_version else copy_json(obj) for obj in objects],
            api_version,
        )

    def convert_owned(self, objects: Sequence[Any], api_version: str) -> list[Object]:
        """Like ``convert``, but changes the objects in place."""
        self._check_target(api_version)
        return [self._convert_one(obj, api_version) for obj in objects]

    def _check_target(self, api_version: str) -> None:
        if (api_version, api_version) not in self._routes:
            known = ", ".join(self.versions)
            raise ConversionError(
                f"{api_version!r} is not a version of {self.kind}.{self.group}; there is {known}"
            )

    def _convert_one(self, obj: Any, api_version: str) -> Object:
        route = self._route(obj, api_version)
        result: Object = obj
        for version, step, trusted in route:
            run = self._trusted_step if trusted else self._step
            result = run(result, version, step)
        return result

    def _route(self, obj: Any, api_version: str) -> tuple[tuple[str, Step, bool], ...]:
        if not isinstance(obj, dict):
            raise ConversionError("an item of the ConversionReview is not an object")
        if obj.get("kind") != self.kind:
            raise ConversionError(f"expected objects of kind {self.kind}, got {obj.get('kind')!r}")
        found = obj.get("apiVersion")
        route = self._routes.get((found, api_version)) if isinstance(found, str) else None
        if route is None:
            raise ConversionError(f"cannot convert {self.kind} from version {found!r}")
        return route

    def _trusted_step(self, obj: Object, api_version: str, step: Step) -> Object:
        """Run rules that cannot change metadata, without a copy of it; only annotations are
        compared.
        """
        metadata = _metadata(obj)
        before = metadata.get("annotations")
        if isinstance(before, dict):
            before = dict(before)
        try:
            step(obj)
        except Exception as error:
            raise _failure(error, obj) from error
        obj["apiVersion"] = api_version
        if metadata.get("annotations") == before:
            return obj
        original = {"kind": self.kind, "metadata": {**metadata, "annotations": before}}
        return self._accept(original, obj, api_version)

    def _step(self, obj: Object, api_version: str, step: Step) -> Object:
        original = {"kind": self.kind, "metadata": copy_json(_metadata(obj))}
        try:
            returned = step(obj)
        except Exception as error:
            raise _failure(error, original) from error
        result = obj if returned is None else returned
        if not isinstance(result, dict):
            raise ConversionError(f"{_name(original)}: the converter returned no object")
        framed = {"metadata": original["metadata"], **result}
        framed |= {"apiVersion": api_version, "kind": self.kind}
        return self._accept(original, framed, api_version)

    def _accept(self, original: Object, result: Object, api_version: str) -> Object:
        try:
            return contract.accept(original, result, api_version)
        except contract.BrokenContract as broken:
            raise ConversionError(f"{_name(original)}: {broken.text}") from None


def _failure(error: Exception, obj: Object) -> ConversionError:
    if isinstance(error, ConversionError):
        return ConversionError(f"{_name(obj)}: {error}")
    # The message of a foreign exception may quote the object, so only its type is reported.
    what, where = type(error).__name__, _raised_at(error)
    return ConversionError(f"{_name(obj)}: the converter failed with {what} at {where}")


def _metadata(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise ConversionError("an object without metadata cannot be converted")
    return metadata


def _name(obj: Mapping[str, Any]) -> str:
    metadata = obj["metadata"]
    name = metadata.get("name") or metadata.get("generateName") or "(no name)"
    namespace = metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)


def _raised_at(error: Exception) -> str:
    trace = error.__traceback__
    last = None
    while trace is not None:
        last, trace = trace, trace.tb_next
    if last is None:
        return "an unknown place"
    code = last.tb_frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{last.tb_lineno} in {code.co_name}"
