"""Kueue's policies: quota tree, flavors, cycles, classic and fair preemption."""
