"""The error of a webhook call without a usable answer; raised by ``transport.py``."""

from __future__ import annotations


class CallFailed(Exception):
    """A webhook gave no usable HTTP answer; ``text`` is what a Go client says about it."""

    def __init__(
        self,
        text: str,
        *,
        advice: str = "",
        timed_out: bool = False,
        unreachable: bool = False,
        misconfigured: bool = False,
        code: int = 503,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.advice = advice
        self.timed_out = timed_out
        self.unreachable = unreachable
        """Whether no request was accepted at all, so that its content is not the cause."""
        self.misconfigured = misconfigured
        """Whether the client configuration itself is invalid."""
        self.code = code
        """The HTTP status to answer with."""
