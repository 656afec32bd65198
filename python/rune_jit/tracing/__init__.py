"""What a traced function runs on: the trace, its arrays, their storages and sizes."""
