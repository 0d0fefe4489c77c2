"""Who asks for what, and whether it is granted. Knows no HTTP and no object."""
