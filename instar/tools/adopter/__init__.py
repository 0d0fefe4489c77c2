"""Moves an API group with all its objects from a main cluster to instar behind its aggregation
layer, and back: ``instar adopt``.

Pure: ``moved_group.py``, ``freeze_policy.py``, ``api_services.py``, ``digests.py``.
The rest asks the main cluster, all its API servers, and instar through them. Each step may be
repeated: a run that was killed is run again, and goes on or back by what it finds in the cluster.
"""
