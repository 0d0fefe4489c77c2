"""Values and mechanisms that are independent of Kubernetes.

JSON values, field errors, API error classes, limits, offloading work from the event loop, metrics,
certificates. Every other package imports from here; modules here import only each other.
"""
