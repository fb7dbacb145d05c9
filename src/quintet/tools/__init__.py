"""One file, one tool. Tools know the workspace and the domain; who called them and what is stored they do not know."""
