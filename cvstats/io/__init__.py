"""Reading loss logs from files and tables of other tools, and writing logs to files."""
