"""Verbs, true for every protocol. Imports the domain only; the outside comes in through ports."""
