"""Which requests may change the protocol of their connection, told by their target alone.

``lifecycle/lifetime.py`` gives it to the connections of the port: what follows such a request goes
to its handler instead of being read as the next request.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

_STREAMING = (b"exec", b"attach", b"portforward")


def may_upgrade(target: bytes) -> bool:
    """A watch, or a subresource whose other end is a kubelet or a pod."""
    path, _, query = target.partition(b"?")
    parts = unquote_to_bytes(path).split(b"/")
    return b"watch" in query or b"watch" in parts or b"proxy" in parts or parts[-1] in _STREAMING
