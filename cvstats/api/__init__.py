"""The typed functions that make up the public interface."""
