"""The real parts behind the ports: files, processes, command parsing, project roots."""
