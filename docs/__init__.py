"""The documents, and the program that writes the one that is generated."""
