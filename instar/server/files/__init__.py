"""Files of a server: certificates, configuration files, kubeconfigs, temporary folders.

Called by ``server/lifecycle`` at start and by the commands that run servers.
"""
