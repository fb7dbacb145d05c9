"""HTTP: guards, routes, answers and streams, once for every protocol that is served over it. Knows no route by name."""
