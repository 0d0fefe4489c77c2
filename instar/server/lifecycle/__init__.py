"""What a server is made of, how it starts and how it ends."""
