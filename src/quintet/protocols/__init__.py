"""One package per published protocol; each only translates between its wire and the engine."""
