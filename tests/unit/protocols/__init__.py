"""Each protocol with an in-memory peer over the real engine."""
