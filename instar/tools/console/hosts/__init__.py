"""Hosts of the console: inside a server, or standalone with a kubeconfig."""
