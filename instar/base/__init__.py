"""Values and mechanisms that are independent of Kubernetes.

JSON values, field errors, the error tree, limits, offloading work from the event loop, metrics,
certificates. Every other package imports from here; modules here import only each other.
"""
