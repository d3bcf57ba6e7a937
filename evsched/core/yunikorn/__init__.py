"""YuniKorn's policies: order, allocation, preemption for guarantees, required nodes, quota enforcement."""
