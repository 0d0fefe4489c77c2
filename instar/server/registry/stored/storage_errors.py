"""What went wrong in the store, as the error of a request. Knows no entries and no cache."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from instar.base.errors import ApiError, Expired, ServiceUnavailable, Unclassified
from instar.wire.storage.store import Compacted, StoreError, Unavailable, ValueTooLarge
from instar.wire.storage.value_reader import Gone

T = TypeVar("T")


async def guarded(call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await call()
    except StoreError as error:
        raise as_api_error(error) from error


def as_api_error(error: StoreError) -> ApiError:
    match error:
        case ValueTooLarge():
            return Unclassified("etcdserver: request is too large")
        case Unavailable():
            return ServiceUnavailable(f"the storage is unavailable: {error}", retry_after=1)
        case Gone():
            return Expired(f"The provided resource version is too old: {error}")
        case Compacted():
            return Unclassified(str(error))
        case _:
            return Unclassified(f"storage: {error}")
