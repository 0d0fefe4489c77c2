"""Kubernetes' CEL function library, one module per upstream library.

``KUBERNETES`` is the library of rules and policies, ``MUTATION`` that of mutating policies.
Upstream has no math library, ``cel.bind``, encoders, jsonpatch or string ``reverse`` for rules, so
this library has none of them either. Libraries are in upstream's order: with dynamic argument types
the first fitting overload decides.
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

MUTATION = KUBERNETES.with_functions(patches.overloads())
"""Adds what mutations need; ``patches.type_named`` finds the types they construct."""
