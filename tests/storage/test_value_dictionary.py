"""Dictionaries for values: what cannot be trained on, and bytes that no dictionary packed."""

from __future__ import annotations

import pytest

from instar.wire.storage import value_dictionary
from instar.wire.storage.value_dictionary import DamagedFrame, Untrainable, train


def test_samples_that_are_too_few_train_nothing() -> None:
    with pytest.raises(Untrainable):
        train([b"one", b"two"])


def test_other_bytes_are_no_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_dictionary, "CHOICES", ((2 << 10, {"k": 200, "d": 8}),))
    samples = [
        b'{"kind":"Thing","metadata":{"name":"t%d"},"spec":{}}' % number for number in range(90)
    ]
    [dictionary] = train(samples)

    for other in (b"", b"{}", b"\x28\xb5\x2f\xfd"):
        with pytest.raises(DamagedFrame):
            dictionary.unpack(other)
