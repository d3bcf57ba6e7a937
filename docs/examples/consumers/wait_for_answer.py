"""Propose an ask and wait until it was accepted and bound, or refused:

    python wait_for_answer.py localhost:9092 cluster job-7 '{"application": "jobs", "queue": "root.web", "resources": {"vcore": 1000}}'

It may be killed and started again at any time with the same id: a proposal of the same id is recognised, and
the answer is in the log. Exit code 1 where it was refused or withdrawn.
"""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from steps import Steps


async def propose(bootstrap, name, proposal, partition):
    """Write a proposal; no acknowledgement says that it was accepted, only the log does."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    await producer.start()
    try:
        await producer.send_and_wait(
            f"{name}-inbox",
            json.dumps(proposal).encode(),
            partition=partition,
            headers=[("ce_source", b"/examples/wait-for-answer")],
        )
    finally:
        await producer.stop()


async def events(bootstrap, name, partition):
    """Yield every event of the log from its beginning, and go on with those to come."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="none"
    )
    await consumer.start()
    try:
        log = TopicPartition(f"{name}-log", partition)
        consumer.assign([log])
        consumer.seek(log, 0)
        steps = Steps()
        async for record in consumer:
            step = steps.take(record.offset, record.value)
            for event in step[1] if step else ():
                yield event
    finally:
        await consumer.stop()


async def main(bootstrap, name, ask, wanted, partition=0):
    proposal = {
        "type": "AskSubmitted",
        "ask": ask,
        "proposal": f"{ask}:submit",
        **json.loads(wanted),
    }
    await propose(bootstrap, name, proposal, partition)
    accepted = False
    async for event in events(bootstrap, name, partition):
        match event:
            case {"type": "AskSubmitted", "proposal": found} if found == proposal["proposal"]:
                accepted = True
                print("accepted", event["seq"], flush=True)
            case {"type": "InputRejected", "proposal": found} if found == proposal["proposal"]:
                if not accepted:  # otherwise it is the repetition that was recognised
                    print("refused", event["seq"], event["reason"], flush=True)
                    return 1
            case {"type": "AllocationBound", "ask": found} if accepted and found == ask:
                print("bound", event["seq"], event.get("node"), flush=True)
                return 0
            case {"type": "AskWithdrawn", "ask": found} if accepted and found == ask:
                print("withdrawn", event["seq"], flush=True)
                return 1


sys.exit(asyncio.run(main(*sys.argv[1:])))
