"""A thread as a document for people: Markdown or one HTML file. Everything in it came from outside and stays text."""
