"""A real cluster: what happens there goes into the inbox, object by object, and nothing there is changed."""
