"""Limits validation by a schema: the number of errors found, and the processor time spent.

A schema can find millions of errors in a small object, and take minutes to find none. Validators
collect errors in ``Findings``, which stops at as many as a response contains; ``compiled.py`` sets
the time limit with ``limit_time``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from threading import local
from time import thread_time

from instar.base.field_errors import FieldError
from instar.base.limits import JUDGING_SECONDS, MAX_ERRORS_TOLD


class TookTooLong(Exception):
    """Validating the value took more processor time than ``JUDGING_SECONDS``."""


class _ValidationDeadline(local):
    """Per thread: the processor time at which validation must stop."""

    until = inf


_JUDGING = _ValidationDeadline()


class EnoughFound(Exception):
    """The list is full; the value is invalid in any case."""


class Findings(list[FieldError]):
    """Raises ``EnoughFound`` when there is one error more than a response contains."""

    def append(self, error: FieldError, /) -> None:
        super().append(error)
        if len(self) > MAX_ERRORS_TOLD:
            raise EnoughFound

    def extend(self, errors: Iterable[FieldError], /) -> None:
        for error in errors:
            self.append(error)


def collect_errors(judge: Callable[[list[FieldError]], None]) -> list[FieldError]:
    """Return the errors that ``judge`` appends to its list, until the list is full. Raises
    ``TookTooLong`` within ``limit_time``."""
    if thread_time() > _JUDGING.until:
        raise TookTooLong
    found = Findings()
    with suppress(EnoughFound):
        judge(found)
    return found


@contextmanager
def limit_time() -> Iterator[None]:
    """Limit the processor time of the block: it validates one object."""
    _JUDGING.until = thread_time() + JUDGING_SECONDS
    try:
        yield
    finally:
        _JUDGING.until = inf
