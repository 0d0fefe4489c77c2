"""Public API: serve an ASGI application over TLS."""

from instar.tools.sdk.serving import TlsFiles, listen, serve

__all__ = ["TlsFiles", "listen", "serve"]
