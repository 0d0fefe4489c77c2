"""Every text that people read, in other words: what changes its answer then decided by a text.

Letters are exchanged one by one, so that no word, prefix or pattern survives; texts stay as
distinct as they were. Done where texts are put into values, in this process only.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import pytest

from instar.base.errors import ApiError
from instar.base.fast_dataclass import complete
from instar.base.field_errors import FieldError
from instar.server.registry.controllers.migration_crd import MigratingCrd
from instar.server.registry.controllers.migrations import MigrationController
from instar.tools.reviewer.report import ChecklistAnswer, Finding, PlanStep, Problem, StoredObject
from instar.tools.reviewer.rule_kit import FindingDraft
from instar.tools.sdk.checking.laws import LawBroken
from instar.wire.conversion.contract import BrokenContract
from instar.wire.webhooks.failure import CallFailed

MARK = "¡"
_OTHER = str.maketrans(
    ascii_lowercase + ascii_uppercase,
    ascii_lowercase[13:] + ascii_lowercase[:13] + ascii_uppercase[13:] + ascii_uppercase[:13],
)

_TEXTS: tuple[tuple[type, str, tuple[str, ...]], ...] = (
    (FieldError, "__init__", ("detail",)),
    (ApiError, "__init__", ("message",)),
    (BrokenContract, "__init__", ("text",)),
    (CallFailed, "__init__", ("text", "advice")),
    (LawBroken, "__init__", ("message", "found")),
    (Problem, "__init__", ("message",)),
    (FindingDraft, "__init__", ("message", "details", "why_no_witness")),
    (Finding, "__init__", ("message", "details", "unwitnessed")),
    (PlanStep, "__init__", ("title", "why", "preconditions", "commands", "rollback")),
    (ChecklistAnswer, "__init__", ("question", "evidence")),
    (StoredObject, "__init__", ("reasons",)),
    (MigratingCrd, "_condition", ("message",)),
    (MigrationController, "_condition", ("message",)),
)
"""Which arguments of which function are texts for people."""


def reworded(value: Any) -> Any:
    if isinstance(value, str):
        return value if value[:1] in ("", MARK) else MARK + value.translate(_OTHER)
    if isinstance(value, (tuple, list)):
        return type(value)(map(reworded, value))
    return value


def reword_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, arguments in _TEXTS:
        complete(owner)
        monkeypatch.setattr(owner, name, _rewording(getattr(owner, name), arguments))
    for plain in _plain_errors(Exception):
        monkeypatch.setattr(plain, "__init__", _rewording_error)


def _rewording(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for name in names:
            if name in bound.arguments:
                bound.arguments[name] = reworded(bound.arguments[name])
        return function(*bound.args, **bound.kwargs)

    return call


def _rewording_error(self: BaseException, *args: Any) -> None:
    BaseException.__init__(self, *map(reworded, args))


def _plain_errors(above: type[BaseException]) -> Iterator[type[BaseException]]:
    """The package's errors that are nothing but a text."""
    for error in above.__subclasses__():
        if not error.__module__.startswith("instar."):
            yield from _plain_errors(error)
        elif "__init__" not in vars(error):
            yield error
            yield from _plain_errors(error)
