"""Zstandard dictionary of one collection: packs values that look alike, and unpacks them.

``server/registry/stored/packing`` trains one for each large collection, packs its values and
unpacks them for readers. The module works on bytes. A packed value is one zstandard frame
without the number of its dictionary: whatever holds the frame also holds the dictionary.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import zstandard

LEVEL = 1
CHOICES: tuple[tuple[int, dict[str, int]], ...] = (
    (16 << 10, {}),
    (64 << 10, {}),
    (64 << 10, {"k": 1000, "d": 8}),
)
"""Sizes in bytes, and parameters of the training: without them the library tries some."""
SAMPLE_BYTES = 2 << 20
"""Bytes of samples that a dictionary is trained on; more take longer and gain little."""
FEWEST_SAMPLES = 16


class DamagedFrame(Exception):
    """A packed value cannot be unpacked."""


class Untrainable(Exception):
    """The samples are too few or have nothing in common."""


class _Contexts(threading.local):
    """A compressor and a decompressor for each thread, because two threads must not use one."""

    def __init__(self, content: zstandard.ZstdCompressionDict) -> None:
        import zstandard  # late: as in ``train``

        self.unpack: Callable[[bytes], bytes] = zstandard.ZstdDecompressor(
            dict_data=content
        ).decompress
        self._content = content

    @cached_property
    def pack(self) -> Callable[[bytes], bytes]:
        import zstandard  # late: as in ``train``

        compressor = zstandard.ZstdCompressor(
            level=LEVEL, dict_data=self._content, write_dict_id=False
        )
        return compressor.compress


class ValueDictionary:
    """A trained dictionary. Its memory is freed with the last packed value that refers to it."""

    __slots__ = ("_content", "_contexts", "_failure", "size")

    def __init__(self, content: bytes) -> None:
        import zstandard  # late: as in ``train``

        self._content = zstandard.ZstdCompressionDict(content)
        self._content.precompute_compress(level=LEVEL)
        self._contexts = _Contexts(self._content)
        self._failure: type[Exception] = zstandard.ZstdError
        self.size = len(content)

    def pack(self, value: bytes) -> bytes:
        # copied: the library returns bytes in memory for the longest possible frame
        return bytes(memoryview(self._contexts.pack(value)))

    def trim(self) -> None:
        """Free the buffers of all threads, which may be some megabytes each."""
        self._contexts = _Contexts(self._content)

    def unpack(self, packed: bytes) -> bytes:
        """Return the value. Raises ``DamagedFrame``."""
        try:
            return self._contexts.unpack(packed)
        except (self._failure, MemoryError) as error:
            raise DamagedFrame(str(error)) from error

    def unpack_all(self, packed: Iterable[bytes]) -> list[bytes]:
        """Return the values. Raises ``DamagedFrame``."""
        try:
            return list(map(self._contexts.unpack, packed))
        except (self._failure, MemoryError) as error:
            raise DamagedFrame(str(error)) from error


def train(samples: Sequence[bytes]) -> list[ValueDictionary]:
    """Return dictionaries for values like these, for the caller to try: the library's own choice of
    parameters is often not the best. Takes tens of milliseconds, most of it without the interpreter
    lock. Raises ``Untrainable``."""
    import zstandard  # late: only a server with a large collection needs it

    if len(samples) < FEWEST_SAMPLES:
        raise Untrainable("too few samples")
    most, found, failure = sum(map(len, samples)) // 2, list[ValueDictionary](), ""
    for size, parameters in CHOICES:
        try:
            made = zstandard.train_dictionary(
                min(size, most), list(samples), level=LEVEL, **parameters
            )
        except (zstandard.ZstdError, ValueError) as error:
            failure = str(error)
            continue
        found.append(ValueDictionary(made.as_bytes()))
    if not found:
        raise Untrainable(failure)
    return found
