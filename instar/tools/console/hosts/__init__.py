"""Where a console runs: inside a server, or beside a browser with what a kubeconfig holds."""
