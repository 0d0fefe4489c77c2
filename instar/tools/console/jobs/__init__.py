"""Work that a person's input can make long: done in a process of its own, with a time and a memory
it may use, and killed when that is over. A server goes on serving meanwhile."""
