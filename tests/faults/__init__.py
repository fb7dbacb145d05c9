"""Real processes, real kills, real files: what Quintet promises under faults."""
