"""What a traced function computes with: the trace, its arrays, their storages and sizes."""
