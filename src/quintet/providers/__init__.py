"""Model wires, one file each, and the table that finds them. Knows the domain only: no threads, tools or journal."""
