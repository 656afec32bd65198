"""Pages of HTML that need no network: one file with its style, its script and its pictures."""
