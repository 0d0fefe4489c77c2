"""Path of a webhook URL as kube-apiserver sends it: decoded, cleaned and escaped like Go does.

``transport.py`` calls it for admission and conversion webhooks. Test suites (envtest among them)
write URLs like ``https://HOST:PORT//path``; a Go server answers an uncleaned path with a redirect.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

_UNESCAPED_CHARACTERS = "$&+,/:;=@-_.~"
"""Characters besides letters and digits that Go leaves alone in a path."""


def clean_url_path(path: str) -> str:
    """Return the escaped path after Go's ``path.Join("/", path)``.

    Empty and ``.`` segments are dropped, ``..`` removes the segment before it, and there is no
    slash at the end.
    """
    kept: list[bytes] = []
    for segment in unquote_to_bytes(path).split(b"/"):
        if segment == b"..":
            del kept[-1:]
        elif segment not in (b"", b"."):
            kept.append(segment)
    return quote(b"/" + b"/".join(kept), safe=_UNESCAPED_CHARACTERS)
