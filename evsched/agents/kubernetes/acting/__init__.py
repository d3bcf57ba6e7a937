"""Carries decisions out in a Kubernetes cluster: binds, frees, evicts, and says on each pod why it waits."""
