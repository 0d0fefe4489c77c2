"""Where an object lies in the store: kube-apiserver's key layout, below the configured prefix.

``<group>/<plural>/[<namespace>/]<name>``; the first two parts name a collection. The core group
has no name upstream; here it is ``core`` so that our JSON never shadows upstream's binary values.
"""

from __future__ import annotations

CORE = "core"


def collection_prefix(group: str, plural: str) -> str:
    return f"{group or CORE}/{plural}/"


def collection_of(key: str) -> str:
    """The collection prefix a key belongs to; a key outside the layout is its own collection."""
    group_end = key.find("/")
    plural_end = key.find("/", group_end + 1)
    return key[: plural_end + 1] if plural_end > 0 else key


_WITHOUT_A_DOT = (CORE, "apps", "autoscaling", "batch", "policy")
"""Groups of built-in kinds; every other group has a dot."""


def in_layout(key: str) -> bool:
    """Whether the key is of ours: below the name of a group.

    A real cluster's own objects (``pods/…``, binary, and many) may lie beside ours.
    """
    group = key.partition("/")[0]
    return "." in group or group in _WITHOUT_A_DOT


_OF_BUILT_IN_KINDS = ".k8s.io"


def in_built_in_group(key: str) -> bool:
    """Whether the key is of a group that every cluster has."""
    group = key.partition("/")[0]
    return group in _WITHOUT_A_DOT or group.endswith(_OF_BUILT_IN_KINDS)
