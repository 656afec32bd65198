"""`rune_jit.profile()`: records what programs do while they run, and how long it takes."""
