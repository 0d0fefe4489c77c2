"""Auditing: policy, record of one request, events as text, log and webhook backends.

The server loads this package only when an audit policy is configured. ``policy``,
``request_record`` and ``event_text`` are pure; ``logfile`` and ``sinks`` do the I/O.
"""
