"""Programs on arrays in chunks: dask's arrays, which may be larger than memory."""
