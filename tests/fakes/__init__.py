"""Stand-ins for the outside, used by several tests."""
