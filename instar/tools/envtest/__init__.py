"""Stand-ins for the binaries of controller-runtime's envtest, so that Go suites run on instar."""
