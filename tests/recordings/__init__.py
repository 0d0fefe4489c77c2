"""Requests of our own making, what a real kube-apiserver answered, and the test that instar
answers the same. ``scripts/record --server KUBECONFIG`` writes ``answers/`` again."""
