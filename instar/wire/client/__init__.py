"""Kubernetes API client of the tools: kubeconfigs, credentials, requests, discovery.

Used by the commands, the tools and the console to reach any cluster.
"""
