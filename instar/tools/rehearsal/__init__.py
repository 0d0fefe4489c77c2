"""A whole upgrade tried out on a copy of the cluster: steps, clients, objects, the way back.

Stands above the tools and an embedded server. What is said about a step is pure (``steps``,
``clients``, ``judgement``, ``estimate``); who asks the copy is in ``stage`` and what builds on it.
"""
