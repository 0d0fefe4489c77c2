"""Contract of conversion answers: checks converted objects and restores their metadata.

The functions do no I/O. They are called for webhook answers (``webhook.py``), in-process converters
(``in_process.py``) and by the SDK's checks. Order and texts are kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import orjson

from instar.base import field_errors
from instar.base.field_errors import FieldError
from instar.base.json_values import Object, same_json
from instar.kube.api.conversion_review import (
    GROUP,
    KIND,
    SUCCESS,
    ConversionRequest,
    ConversionResponse,
)
from instar.kube.api.encoding.go_json_errors import go_type, go_value_type
from instar.kube.api.names import GroupVersionKind, parse_group_version
from instar.kube.api.string_rules import label_value, qualified_name
from instar.wire.conversion.failure import FailureType

MOST_ANNOTATION_BYTES = 256 * 1024


class AnswerStage(Enum):
    """Stage at which an answer failed, which decides upstream's sentence around the problem."""

    ENVELOPE = "failed: {text}", "failed: {text}"
    COUNT = "returned {text}", "returned {text}"
    DECODE = "{text}", "returned invalid converted object at index {index}: {text}"
    SHAPE = (
        "returned invalid object at index {index}: {text}",
        "returned invalid converted object at index {index}: {text}",
    )
    IDENTITY = (
        "returned invalid object: {text}",
        "returned invalid converted object at index {index}: {text}",
    )
    METADATA = (
        "returned invalid metadata: {text}",
        "returned invalid metadata in object at index {index}: {text}",
    )

    @property
    def failure_type(self) -> FailureType:
        if self is AnswerStage.ENVELOPE:
            return FailureType.MALFORMED
        return FailureType.PARTIAL if self is AnswerStage.COUNT else FailureType.INVALID_OBJECT


class BrokenContract(ValueError):
    """An answer violates the contract: ``text`` is the violation, ``index`` the object (-1: the
    whole answer)."""

    def __init__(self, stage: AnswerStage, text: str, index: int = -1) -> None:
        super().__init__(text)
        self.stage = stage
        self.text = text
        self.index = index

    def sentence(self, source: GroupVersionKind, *, batch: bool) -> str:
        """Return upstream's whole message, which differs for one object and several."""
        single, several = self.stage.value
        if self.stage is AnswerStage.DECODE and not batch:
            return self.text
        form = (several if batch else single).format(text=self.text, index=self.index)
        return f"conversion webhook for {source} {form}"


def check_answer(sent: ConversionRequest, answer: ConversionResponse) -> Sequence[Any]:
    """Return the converted objects of an answer to ``sent``, not yet checked."""
    if sent.version == "v1":
        _check_kind(answer)
    if not answer.present:
        raise BrokenContract(AnswerStage.ENVELOPE, "no response provided")
    if sent.version == "v1" and answer.uid != sent.uid:
        problem = f'expected response.uid="{sent.uid}", got "{answer.uid}"'
        raise BrokenContract(AnswerStage.ENVELOPE, problem)
    if answer.status != SUCCESS:
        unexplained = f"response.result.status was '{answer.status}', not '{SUCCESS}'"
        raise BrokenContract(AnswerStage.ENVELOPE, answer.message or unexplained)
    return answer.objects


def accept_all(
    originals: Sequence[Mapping[str, Any]], converted: Sequence[Any], api_version: str
) -> list[Object]:
    """Return the converted objects, each checked against the original, with metadata restored."""
    if len(converted) != len(originals):
        text = f"{len(converted)} objects, expected {len(originals)}"
        raise BrokenContract(AnswerStage.COUNT, text)
    accepted = []
    for index, (original, answer) in enumerate(zip(originals, converted, strict=True)):
        try:
            accepted.append(accept(original, answer, api_version))
        except BrokenContract as broken:
            broken.index = index
            raise
    return accepted


def accept(original: Mapping[str, Any], converted: Any, api_version: str) -> Object:
    """Return one converted object with the original's metadata; shares values with both."""
    if not isinstance(converted, dict):
        raise BrokenContract(AnswerStage.DECODE, _not_an_object(converted))
    kind = converted.get("kind")
    if not isinstance(kind, str) or not kind:
        body = orjson.dumps(converted).decode()
        raise BrokenContract(AnswerStage.DECODE, f"Object 'Kind' is missing in '{body}'")
    received = _string(converted, "apiVersion")
    if received != api_version:
        text = f"invalid groupVersion (expected {api_version}, received {received})"
        raise BrokenContract(AnswerStage.SHAPE, text)
    if kind != original.get("kind"):
        text = f"invalid kind (expected {original.get('kind', '')}, received {kind})"
        raise BrokenContract(AnswerStage.SHAPE, text)
    _check_identity(original, converted)
    return {**converted, "metadata": restored_metadata(original, converted)}


def restored_metadata(original: Mapping[str, Any], converted: Mapping[str, Any]) -> Object:
    """Return the original's metadata with the answer's labels and annotations."""
    if "metadata" not in converted:
        raise BrokenContract(AnswerStage.METADATA, "missing metadata in converted object")
    answer = converted["metadata"]
    if not isinstance(answer, dict):
        text = f"invalid metadata of type {go_value_type(answer)} in converted object"
        raise BrokenContract(AnswerStage.METADATA, text)
    kept = original.get("metadata", {})
    if not isinstance(kept, dict):
        text = f"invalid metadata of type {go_value_type(kept)} in input object"
        raise BrokenContract(AnswerStage.METADATA, text)
    result = dict(kept)
    for name, validate in _CHANGEABLE:
        values = answer.get(name)
        if values is None:
            result.pop(name, None)
            continue
        if not same_json(values, kept.get(name)):
            _check_changed(name, kept.get(name), values, validate)
        result[name] = values
    return result


def source_of(obj: Mapping[str, Any]) -> GroupVersionKind:
    """Return the group, version and kind of an object; an unreadable version is empty."""
    try:
        group, version = parse_group_version(_string(obj, "apiVersion"))
    except ValueError:
        group, version = "", ""
    return GroupVersionKind(group, version, _string(obj, "kind"))


def _check_kind(answer: ConversionResponse) -> None:
    expected = GroupVersionKind(GROUP, "v1", KIND)
    received = source_of({"apiVersion": answer.api_version, "kind": answer.kind})
    if received != expected:
        raise BrokenContract(
            AnswerStage.ENVELOPE, f"expected webhook response of {expected}, got {received}"
        )


def _check_identity(original: Mapping[str, Any], converted: Mapping[str, Any]) -> None:
    before, after = original.get("metadata"), converted.get("metadata")
    if isinstance(before, dict) and isinstance(after, dict) and _same(before, after):
        return
    for field, word in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        was, now = _string(before, field), _string(after, field)
        if was != now:
            raise BrokenContract(AnswerStage.IDENTITY, f"must have the same {word}: {was} != {now}")


def _same(before: Object, after: Object) -> bool:
    """Fast check without looking at types, which succeeds nearly always."""
    return (
        before.get("name") == after.get("name")
        and before.get("namespace") == after.get("namespace")
        and before.get("uid") == after.get("uid")
    )


def _check_changed(
    name: str, before: Any, after: Any, validate: Callable[[dict[str, str]], list[FieldError]]
) -> None:
    for values, owner in ((after, "converted"), (before, "original")):
        if values is not None and not isinstance(values, dict):
            found = go_value_type(values)
            raise BrokenContract(
                AnswerStage.METADATA, f"invalid metadata.{name} of type {found} in {owner} object"
            )
    for key, value in after.items():
        if not isinstance(value, str):
            found = go_value_type(value)
            raise BrokenContract(
                AnswerStage.METADATA,
                f"metadata.{name}[{key}] must be a string, but is {found} in converted object",
            )
    if not after and not before:
        return
    errors = validate(after)
    if errors:
        raise BrokenContract(AnswerStage.METADATA, field_errors.messages(errors))


def _label_errors(labels: dict[str, str]) -> list[FieldError]:
    path = "metadata.labels"
    errors = []
    for name, value in sorted(labels.items()):
        errors += [field_errors.invalid(path, name, problem) for problem in qualified_name(name)]
        errors += [field_errors.invalid(path, value, problem) for problem in label_value(value)]
    return errors


def _annotation_errors(annotations: dict[str, str]) -> list[FieldError]:
    path = "metadata.annotation"  # singular: upstream's typo is part of the wire format
    errors = []
    for name in sorted(annotations):
        problems = qualified_name(name.lower())
        errors += [field_errors.invalid(path, name, problem) for problem in problems]
    size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
    if size > MOST_ANNOTATION_BYTES:
        errors.append(field_errors.too_long(path, MOST_ANNOTATION_BYTES))
    return errors


_CHANGEABLE = (("labels", _label_errors), ("annotations", _annotation_errors))


def _string(holder: Any, name: str) -> str:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""


def _not_an_object(value: Any) -> str:
    if value is None:
        return "unexpected end of JSON input"
    kind = go_type(value)
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
