"""The logs of other tools, a file for each: their table to a tidy one with our levels."""
