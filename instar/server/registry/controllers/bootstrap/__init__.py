"""Bootstrap objects: what every cluster and every namespace has, created at start and recreated.

``server/lifecycle`` creates ``BootstrapController``, which writes these objects through the verbs.
"""
