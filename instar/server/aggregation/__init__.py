"""Aggregation layer: API group versions that another server (a backend) serves behind this one.

An APIService with a Service makes a *route*: ``server/app.py`` passes the requests of that group
version on, and ``server/endpoints`` shows it in discovery and OpenAPI. See
docs/how-to/aggregated-apis.md.
"""
