"""Public API for test suites: a server, and the laws of ``instar check``.

::

    import instar.testing

    with instar.testing.server() as server:
        server.install("config/crd")
        run_my_tests(kubeconfig=server.kubeconfig)

The pytest plugin (``instar.testing.plugin``) offers the same as fixtures. Names are loaded on
first use: a suite that wants a server needs neither hypothesis nor the SDK, and a suite that only
has instar installed loads nothing. The implementation is in ``instar.tools.testing``, which is
private.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from instar.tools.testing.api_server import Answer, Server, server
    from instar.tools.testing.converter_laws import (
        assert_converter,
        assert_law,
        check_converter,
        objects,
        read_crd_file,
    )
    from instar.tools.testing.webhooks import Webhook, webhook

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

_SERVER = ("Answer", "Server", "server")
_WEBHOOKS = ("Webhook", "webhook")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = (
        "api_server" if name in _SERVER else "webhooks" if name in _WEBHOOKS else "converter_laws"
    )
    return getattr(importlib.import_module(f"instar.tools.testing.{module}"), name)
