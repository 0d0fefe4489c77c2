"""Key layout of the store: kube-apiserver's, below the configured prefix.

Used by ``server/registry``, mainly ``server/registry/stored/backend.py`` and
``server/registry/resources/serving.py``. A key is ``<group>/<plural>/[<namespace>/]<name>``; the
first two parts name a collection. The core group has no name upstream; here it is ``core``, so that
our JSON never shadows upstream's binary values.
"""

from __future__ import annotations

CORE = "core"


def collection_prefix(group: str, plural: str) -> str:
    """Return the prefix of the keys of a resource's objects."""
    return f"{group or CORE}/{plural}/"


def collection_of(key: str) -> str:
    """Return the collection prefix of a key; a key outside the layout is its own collection."""
    group_end = key.find("/")
    plural_end = key.find("/", group_end + 1)
    return key[: plural_end + 1] if plural_end > 0 else key


_GROUPS_WITHOUT_DOT = (CORE, "apps", "autoscaling", "batch", "policy")
"""Built-in groups without a dot in their name; every other group has one."""


def in_layout(key: str) -> bool:
    """Return whether the key is one of ours, below the name of a group.

    In a real cluster's etcd, its own objects (``pods/…``, binary, and many) lie beside ours.
    """
    group = key.partition("/")[0]
    return "." in group or group in _GROUPS_WITHOUT_DOT


_OF_BUILT_IN_KINDS = ".k8s.io"


def in_built_in_group(key: str) -> bool:
    """Return whether the key belongs to a group that every cluster has."""
    group = key.partition("/")[0]
    return group in _GROUPS_WITHOUT_DOT or group.endswith(_OF_BUILT_IN_KINDS)
