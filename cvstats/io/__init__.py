"""Files and the tables of other tools to loss logs, and logs to files."""
