"""Objects put together piece by piece are what they are one by one."""

from __future__ import annotations

import pytest

from instar.server.registry.stored.views import Views

BODIES = [b'{"apiVersion":"a/v1","n":%d}' % number for number in range(50)]
OTHER = [body.replace(b"a/v1", b"a/v1beta1") for body in BODIES]
OPENING, OTHER_OPENING = b'{"apiVersion":"a/v1"', b'{"apiVersion":"a/v1beta1"'


@pytest.mark.parametrize("size", [1, 100, 10_000])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_pieces_of_any_size_are_all_objects_with_commas_between_them(size: int, count: int) -> None:
    same = Views(BODIES[:count])
    other = Views(BODIES[:count], OTHER_OPENING, len(OPENING))

    assert b"".join(same.pieces(size)) == b",".join(BODIES[:count])
    assert b"".join(other.pieces(size)) == b",".join(OTHER[:count])
    assert same.size == sum(map(len, BODIES[:count]))
    assert other.size == sum(map(len, OTHER[:count]))


def test_putting_together_changes_nothing() -> None:
    bodies = list(BODIES)
    views = Views(bodies, OTHER_OPENING, len(OPENING))

    list(views.pieces(100))

    assert bodies == BODIES
    assert list(views) == OTHER
