"""Reads the policy languages of cluster administrators into one queue model, with errors that name their place."""
