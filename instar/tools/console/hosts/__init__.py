"""Hosts, which connect the console to a Kubernetes API: inside ``instar serve``, or standalone with
a kubeconfig.

``setup.py`` and ``listening.py`` create a host; ``pages.py`` sends requests through the host.
"""
