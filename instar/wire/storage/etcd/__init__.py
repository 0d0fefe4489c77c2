"""The ``Store`` contract on an etcd cluster."""
