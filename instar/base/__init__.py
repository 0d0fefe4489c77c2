"""Plain values and small mechanisms without any Kubernetes in them.

JSON values, field errors, the error tree, limits, offloading work from the event loop, metrics,
certificates. Every other group imports from here; nothing here imports from them.
"""
