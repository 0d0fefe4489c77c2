"""The reviewer of CRD changes: rules find what a change breaks, generated example objects
(witnesses) prove each finding, and renderers print the report.

``instar review``, ``instar upgrade``, the console and a server with ``--review`` call
``reviewing.py``.
"""
