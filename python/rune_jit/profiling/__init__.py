"""`rune_jit.profile()`: what programs do while they run, and how long it takes."""
