"""Compilation for the CPU: LLVM, the disk cache, and this machine's figures."""
