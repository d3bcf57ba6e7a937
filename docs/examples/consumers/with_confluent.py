"""Every step once into a file of JSON lines, with confluent-kafka: python with_confluent.py localhost:9092 cluster steps.jsonl

A line holds the events of a step and the place behind it, so the last whole line says where to go on.
"""

import json
import os
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from steps import Steps

# The log no longer has the next frame, or may not be read.
LOST = {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
}


def resume(path):
    """Return the file, open for writing behind its last whole line, and the place that this line holds."""
    file = open(path, "a+b")
    file.seek(0)
    last, end = b"", 0
    for line in file:
        if line.endswith(b"\n"):  # one that was torn by a kill is not whole
            last, end = line, end + len(line)
    file.truncate(end)
    return file, json.loads(last)["place"] if last else None


def main(bootstrap, name, path, partition=0):
    file, place = resume(path)
    steps = Steps(place) if place else Steps()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{name}-{path}",  # demanded, and of no use: partition and offset are our own
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(f"{name}-log", partition, steps.place[0] + 1)])
    while True:
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            if error.fatal() or error.code() in LOST:
                raise KafkaException(error)
            print(error, file=sys.stderr)  # the client connects and asks again by itself
            continue
        step = steps.take(message.offset(), message.value())
        if step is None:
            continue
        time, events = step
        line = {"time": time, "events": events, "place": steps.place}
        file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
        print(events[-1]["seq"] if events else "-", flush=True)


main(*sys.argv[1:])
