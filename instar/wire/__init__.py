"""Communication with other processes: stores, gRPC, webhooks, conversion, API clients.

The server and the tools call these packages, which have no rules about objects.
"""
