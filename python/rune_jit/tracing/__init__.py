"""Traces, and the objects with which a traced function computes: arrays, storages and sizes."""
