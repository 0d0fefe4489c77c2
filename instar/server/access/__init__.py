"""Authentication and authorization of HTTP requests, with impersonation and access reviews."""
