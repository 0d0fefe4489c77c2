"""A cluster as a file: taken, read in every form people have one in, and served again."""
