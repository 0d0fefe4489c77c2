"""Public API: converters and admission handlers as an ASGI application."""

from instar.tools.sdk.asgi import ConversionApp

__all__ = ["ConversionApp"]
