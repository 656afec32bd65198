"""Calls of jitted functions: arguments taken apart, traced, compiled, kept and run again."""
