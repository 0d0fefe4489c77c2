"""Errors of protobuf encoding and decoding.

Raised by the codec; ``server/rest/bodies.py`` turns them into a Status.
"""

from __future__ import annotations


class ProtobufError(Exception):
    """The bytes are not a valid message of their kind; ``str()`` is upstream's message."""


class EnvelopeError(ProtobufError):
    """The envelope is invalid, so the kind is unknown."""


class MessageError(ProtobufError):
    """The bytes do not fit the kind that the envelope names, or an object does not fit its kind."""

    def __init__(self, api_version: str, kind: str, text: str) -> None:
        super().__init__(text)
        self.api_version = api_version
        self.kind = kind

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


class UnknownKind(Exception):
    """The kind has no protobuf form, like every custom resource."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"{api_version}, Kind={kind}")
        self.api_version = api_version
        self.kind = kind
