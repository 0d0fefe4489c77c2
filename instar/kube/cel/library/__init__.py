"""The functions a Kubernetes rule may call, one module per family.

Upstream has no math library, no ``cel.bind``, no encoders, no jsonpatch and no string ``reverse``
for rules, so neither have we. Families come in upstream's order: where an argument's type is open,
the first overload that fits decides it.
"""

from __future__ import annotations

from itertools import chain

from instar.kube.cel.functions import Library
from instar.kube.cel.library import (
    addresses,
    authorizer,
    formats,
    lists,
    lists_extension,
    operators,
    optionals,
    patches,
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
    lists_extension,
    sets,
    regex,
    optionals,
    urls,
    quantity,
    addresses,
    semver,
    formats,
    authorizer,
)
_TYPED = (standard, optionals, urls, quantity, addresses, semver, formats, authorizer)

KUBERNETES = Library(
    chain.from_iterable(family.overloads() for family in _FAMILIES),
    chain.from_iterable(family.type_names() for family in _TYPED),
)

MUTATION = KUBERNETES.extended(patches.overloads())
"""What also builds changes has besides; ``patches.type_named`` finds the types it builds."""
