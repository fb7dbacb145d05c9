"""The way out to the web, for addresses that a model or a page names: what may be asked, where it may lead, how much
may come back. Knows no tool and no turn.
"""
