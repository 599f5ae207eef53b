// Replaced by the options table in the next change.
