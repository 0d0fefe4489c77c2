"""The main cluster as the home of a server: it serves chosen API groups there, behind the cluster's
aggregation layer.

``lifecycle/lifetime.py`` uses this package for ``instar serve --cluster``. Identities,
authorization, namespaces, admission configuration, quotas and CRDs are then the main cluster's.
They are read through list and watch (or asked for, where a decision is needed) and never written,
except the usage of quotas. Objects of the served groups are in this server's own store.
"""
