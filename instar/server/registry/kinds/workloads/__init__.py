"""Strategies of Pods and of all kinds with a pod template."""
