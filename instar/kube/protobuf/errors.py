"""What can be wrong with bytes that claim to be protobuf."""

from __future__ import annotations


class ProtobufError(Exception):
    """The bytes are no message of the kind they claim to be; ``str()`` is upstream's sentence."""


class EnvelopeError(ProtobufError):
    """Not even the envelope can be read: nobody knows what kind this was to be."""


class MessageError(ProtobufError):
    """The envelope names a kind that its bytes do not fit, or an object does not fit its kind."""

    def __init__(self, api_version: str, kind: str, text: str) -> None:
        super().__init__(text)
        self.api_version = api_version
        self.kind = kind

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


class UnknownKind(Exception):
    """A kind that has no protobuf form, such as every custom resource."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"{api_version}, Kind={kind}")
        self.api_version = api_version
        self.kind = kind
