"""The kinds of files, a module for each."""
