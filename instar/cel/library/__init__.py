"""The functions a Kubernetes rule may call, one module per family.

Upstream has no math library, no ``cel.bind``, no encoders, no jsonpatch and no string ``reverse``
for rules, so neither have we. Its authorizer functions need a variable that rules never get; they
are left out, and naming them is the same compile error about an undeclared reference.
"""

from __future__ import annotations

from itertools import chain

from instar.cel.functions import Library
from instar.cel.library import (
    addresses,
    formats,
    lists,
    listsext,
    operators,
    optionals,
    quantity,
    regex,
    semver,
    sets,
    standard,
    strings,
    times,
    urls,
)

_FAMILIES = (
    operators,
    standard,
    times,
    strings,
    lists,
    listsext,
    sets,
    regex,
    optionals,
    urls,
    quantity,
    addresses,
    semver,
    formats,
)
_TYPED = (standard, optionals, urls, quantity, addresses, semver, formats)

KUBERNETES = Library(
    chain.from_iterable(family.overloads() for family in _FAMILIES),
    chain.from_iterable(family.type_names() for family in _TYPED),
)
