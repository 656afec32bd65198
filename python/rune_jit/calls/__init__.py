"""Calls of jitted functions: takes arguments apart, traces, compiles, and keeps programs."""
