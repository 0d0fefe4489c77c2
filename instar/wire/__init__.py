"""What talks to other processes: stores, gRPC, webhooks, conversion, API clients.

The server and the tools call these. Nothing here decides a rule about objects.
"""
