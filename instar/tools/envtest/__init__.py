"""Stand-ins for the binaries of controller-runtime's envtest, so that Go suites run on instar.

``instar envtest`` writes the folder; a suite starts the programs in it.
"""
