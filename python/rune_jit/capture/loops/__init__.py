"""Loops of the traced function that become loops of the program."""
