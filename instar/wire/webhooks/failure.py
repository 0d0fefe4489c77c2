"""What a webhook that gave no usable answer leaves behind, whatever it was asked for."""

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
        """Whether it took no request at all, so that this one is not to blame."""
        self.misconfigured = misconfigured
        """Whether nobody could be called with such a configuration."""
        self.code = code
        """The HTTP status it stands for."""
