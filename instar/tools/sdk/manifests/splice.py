"""Merges changed data into a YAML tree (ruamel) and keeps its comments and style.

``documents.py`` calls it with the tree, the data it was read as, and the data it should become.
Parts of the tree whose data stays the same are not touched.
"""

from __future__ import annotations

from collections.abc import MutableMapping, MutableSequence
from copy import deepcopy
from typing import Any

from ruamel.yaml.comments import Comment, CommentedMap, CommentedSeq

from instar.tools.sdk.kept_values import canonical


def expand_anchors(tree: Any) -> Any:
    """Return the tree with anchors, aliases and merge keys expanded, because a shared value cannot
    be changed in one place only. Comments stay at their fields.
    """
    if isinstance(tree, CommentedMap):
        fields = CommentedMap()
        for name in tree:
            fields[name] = expand_anchors(tree[name])
        return _with_style(fields, tree)
    if isinstance(tree, CommentedSeq):
        items = CommentedSeq(expand_anchors(item) for item in tree)
        return _with_style(items, tree)
    return tree


def _with_style(copy: Any, original: Any) -> Any:
    if original.fa.flow_style():
        copy.fa.set_flow_style()
    if hasattr(original, Comment.attrib):
        setattr(copy, Comment.attrib, deepcopy(original.ca))
    return copy


def splice(tree: Any, old: Any, new: Any) -> Any:
    """Return the tree for ``new``: the same tree, changed in place, if its shape allows that."""
    if isinstance(old, dict) and isinstance(new, dict) and isinstance(tree, MutableMapping):
        _splice_mapping(tree, old, new)
        return tree
    if isinstance(old, list) and isinstance(new, list) and isinstance(tree, MutableSequence):
        _splice_sequence(tree, old, new)
        return tree
    return tree if _equal(old, new) else new


def _splice_mapping(tree: Any, old: dict[str, Any], new: dict[str, Any]) -> None:
    renamed = _renames(old, new)
    for before, after in renamed.items():
        _rename(tree, before, after)
    gone = [name for name in old if name not in new and name not in renamed]
    added = [name for name in new if name not in old and name not in renamed.values()]
    place = min((_position(tree, name) for name in gone), default=len(tree))
    orphans = [token for token in (_remove(tree, name) for name in gone) if token is not None]
    for offset, name in enumerate(added):
        tree.insert(min(place + offset, len(tree)), name, new[name])
    holder = place + len(added) - 1
    if orphans and holder >= 0:
        _adopt(tree, list(tree)[holder], orphans)
    for name, value in new.items():
        if name in old:
            changed = splice(tree[name], old[name], value)
            if changed is not tree[name]:
                tree[name] = changed


def _renames(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    """Pair a removed and an added field with the same value, so that the comment moves along."""
    came = [name for name in new if name not in old]
    pairs: dict[str, str] = {}
    for before in old:
        if before in new:
            continue
        for after in came:
            if after not in pairs.values() and _equal(old[before], new[after]):
                pairs[before] = after
                break
    return pairs


def _rename(tree: Any, before: str, after: str) -> None:
    place, value = _position(tree, before), tree[before]
    comment = tree.ca.items.pop(before, None)
    del tree[before]
    tree.insert(place, after, value)
    if comment is not None:
        tree.ca.items[after] = comment


def _remove(tree: Any, name: str) -> Any:
    """Remove a field; return the comment lines after it, which belong to the next field."""
    comment = tree.ca.items.pop(name, None)
    del tree[name]
    following = comment[2] if comment is not None and len(comment) > 2 else None
    if following is None:
        return None
    lines = following.value.partition("\n")[2]
    if not lines.strip():
        return None
    following.value = "\n" + lines
    return following


def _adopt(tree: Any, name: str, orphans: list[Any]) -> None:
    """Attach comment lines to another field, so that they precede the same next field again."""
    slots = tree.ca.items.setdefault(name, [None, None, None, None])
    for token in orphans:
        if slots[2] is None:
            slots[2] = token
        else:
            slots[2].value = slots[2].value.rstrip("\n") + token.value


def _splice_sequence(tree: Any, old: list[Any], new: list[Any]) -> None:
    shared = min(len(old), len(new))
    for index in range(shared):
        changed = splice(tree[index], old[index], new[index])
        if changed is not tree[index]:
            tree[index] = changed
    for index in range(len(old) - 1, shared - 1, -1):
        del tree[index]
    tree.extend(new[shared:])


def _position(tree: Any, name: str) -> int:
    return list(tree).index(name)


def _equal(left: Any, right: Any) -> bool:
    return canonical(left) == canonical(right)
