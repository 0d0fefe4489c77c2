"""Words in a case that stand for what only a running server knows: tokens, uids, a port.

``wire.py`` replaces them when a case is sent, so that a case that is kept can be sent to another
server. Those that stand in bodies are as long as what replaces them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TOKEN = b"@TOKEN@"
"""The administrator's token."""
OTHER = b"@OTHER@"
"""The token of a user with few rights."""
LEARN = "X-Fuzz-Learn"
"""A header that names the object whose uid the answer tells."""
PORT = "@PORT"
AUTHORITY = "@AUTHORITY".ljust(2000, "@")
"""Of the webhook: its port, and its certificate authority in base64."""
_UID = re.compile(rb"@UID:([a-z0-9]+)@*")
_TOLD_UID = re.compile(rb'"uid":\s?"([0-9a-f-]{36})"')
_LEARNS = re.compile(rb"X-Fuzz-Learn: ([a-z0-9]+)")
_NOBODY = b"00000000-0000-4000-8000-000000000000"
CANARY = b"zqcanaryqz"
_SEALED = (b"enFjYW5hcnlxe", b"pxY2FuYXJ5cX", b"6cWNhbmFyeXF6")
"""The canary in base64, at each place in three bytes."""


def uid_of(name: str) -> str:
    return f"@UID:{name}".ljust(36, "@")


@dataclass
class Known:
    """What stands for each word, of one server."""

    token: bytes = b""
    other: bytes = b""
    port: bytes = b"00000"
    authority: bytes = b"".ljust(2000, b"@")
    uids: dict[bytes, bytes] = field(default_factory=dict)

    def filled(self, data: bytes) -> bytes:
        if b"@" not in data:
            return data
        data = data.replace(TOKEN, self.token).replace(OTHER, self.other)
        data = data.replace(AUTHORITY.encode(), self.authority)
        data = data.replace(PORT.encode(), self.port)
        return _UID.sub(lambda found: self.uids.get(found[1], _NOBODY), data)

    def learn(self, sent: bytes, told: bytes) -> None:
        name, uid = _LEARNS.search(sent), _TOLD_UID.search(told)
        if name and uid:
            self.uids[name[1]] = uid[1]


def is_read(sent: bytes) -> bool:
    """Whether the answer to a case is looked at although it is no failure."""
    return OTHER in sent or LEARN.encode() in sent


def leaked(sent: bytes, told: bytes) -> bool:
    """Whether a user with few rights was shown what only others may read."""
    return OTHER in sent and (CANARY in told or any(text in told for text in _SEALED))
