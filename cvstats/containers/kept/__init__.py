"""Moments in place of losses: made of batches, added up, written to files."""
