"""Compiling for the CPU: LLVM, the disk cache, and figures of this machine."""
