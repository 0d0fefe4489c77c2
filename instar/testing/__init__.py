"""For the test suites of others: a server, and the laws of ``instar check``.

::

    import instar.testing

    with instar.testing.server() as server:
        server.install("config/crd")
        run_my_tests(kubeconfig=server.kubeconfig)

The pytest plugin (``plugin.py``) offers the same as fixtures. Names are loaded when they are
first used: a suite that wants a server needs neither hypothesis nor the SDK, and one that has
instar merely installed pays for nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from instar.testing.laws import (
        assert_converter,
        assert_law,
        check_converter,
        objects,
        read_crd_file,
    )
    from instar.testing.serving import Answer, Server, server
    from instar.testing.webhooks import Webhook, webhook

__all__ = [
    "Answer",
    "Server",
    "Webhook",
    "assert_converter",
    "assert_law",
    "check_converter",
    "objects",
    "read_crd_file",
    "server",
    "webhook",
]

_SERVING = ("Answer", "Server", "server")
_WEBHOOKS = ("Webhook", "webhook")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = "serving" if name in _SERVING else "webhooks" if name in _WEBHOOKS else "laws"
    return getattr(importlib.import_module(f"{__name__}.{room}"), name)
