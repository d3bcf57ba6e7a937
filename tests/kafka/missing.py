"""What is raised when no real Kafka can be had; it fails the test, as a test that never runs proves nothing."""


class BrokerUnavailable(Exception):
    """One way of getting a broker does not work here; the message says what is missing."""


def nothing_works(reasons: dict[str, str]) -> BrokerUnavailable:
    """Return the error that lists every way that was tried, with the reason why it does not work."""
    tried = "\n".join(f"  - {way}: {reason}" for way, reason in reasons.items())
    return BrokerUnavailable(
        f"no Apache Kafka for the tests; one of these has to work:\n{tried}\n"
        "Start one yourself and set EVSCHED_TEST_KAFKA=host:port, or start Docker, or install a JDK (17 or newer) and Maven."
    )
