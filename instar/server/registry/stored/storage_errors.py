"""Maps store errors to API errors, and reports objects stored in a version that was removed.

``backend.py``, the lists and the label index call it where a ``StoreError`` leaves the store;
``codec.py`` calls ``version_removed``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from instar.base.errors import ApiError, Expired, ServiceUnavailable, Unclassified
from instar.base.json_values import Object
from instar.kube.api.crd import Crd
from instar.wire.conversion.failure import Attempt, ConversionFailed, FailureType
from instar.wire.storage.store import Compacted, StoreError, Unavailable, ValueTooLarge
from instar.wire.storage.value_reader import ValueGone

T = TypeVar("T")


async def with_api_errors(call: Callable[[], Awaitable[T]]) -> T:
    """Await ``call()`` and raise its ``StoreError`` as an API error."""
    try:
        return await call()
    except StoreError as error:
        raise as_api_error(error) from error


def as_api_error(error: StoreError) -> ApiError:
    """Return the API error of a store error."""
    match error:
        case ValueTooLarge():
            return Unclassified("etcdserver: request is too large")
        case Unavailable():
            return ServiceUnavailable(f"the storage is unavailable: {error}", retry_after=1)
        case ValueGone():
            return Expired(f"The provided resource version is too old: {error}")
        case Compacted():
            return Unclassified(str(error))
        case _:
            return Unclassified(f"storage: {error}")


def version_removed(crd: Crd, obj: Object, wanted: str) -> ConversionFailed:
    """Return the error for an object that is stored in a version which has left the CRD."""
    lost = obj["apiVersion"]
    listed = ", ".join(version.name for version in crd.versions)
    return Attempt(crd, wanted, [obj]).failed(
        f"request to convert CR from an invalid group/version: {lost}",
        FailureType.NONE,
        f"the object is stored as {lost}, and the CRD lists only these versions: {listed}",
        advice="put the version back into spec.versions (served: false is enough) and migrate "
        "the stored objects before it is removed",
    )
