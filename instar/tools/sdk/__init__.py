"""The conversion SDK: converters, admission handlers, their server and ``instar check``.

``instar.sdk`` publishes what users import; the ``check``, ``convert`` and ``webhook`` commands and
the console call the modules below directly.
"""
