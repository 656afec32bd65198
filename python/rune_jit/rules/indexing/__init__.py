"""Reading and writing the elements of traced arrays."""
