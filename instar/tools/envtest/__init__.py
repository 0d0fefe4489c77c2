"""A stand-in for the binaries of controller-runtime's envtest, so that its suites run on instar."""
