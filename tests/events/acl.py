"""Rights on a Kafka broker: who may do what to which topic. The client library cannot grant them, so this speaks the protocol."""

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int8, Int16, Int32, Schema, String

READ, WRITE, DESCRIBE_CONFIGS = 3, 4, 10
TOPIC, GROUP = 2, 3
_LITERAL, _ALLOW = 3, 3


class CreateAclsResponse(Response):
    """The answer: an error code for each right."""

    API_KEY = 30
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("results", Array(("error_code", Int16), ("error_message", String("utf-8")))),
    )


class CreateAclsRequestV1(RequestStruct):
    """The question as it is sent."""

    API_KEY = 30
    API_VERSION = 1
    RESPONSE_TYPE = CreateAclsResponse
    SCHEMA = Schema(
        (
            "creations",
            Array(
                ("resource_type", Int8),
                ("resource_name", String("utf-8")),
                ("pattern_type", Int8),
                ("principal", String("utf-8")),
                ("host", String("utf-8")),
                ("operation", Int8),
                ("permission_type", Int8),
            ),
        )
    )


class CreateAclsRequest(Request[CreateAclsRequestV1]):
    """The question."""

    API_KEY = 30

    def __init__(self, rights: list[tuple[object, ...]]) -> None:
        self._rights = rights

    def build(self, request_struct_class: type[CreateAclsRequestV1]) -> CreateAclsRequestV1:
        """Return what is sent."""
        return request_struct_class(self._rights)


async def grant(
    admin: AIOKafkaAdminClient, user: str, name: str, *operations: int, kind: int = TOPIC
) -> None:
    """Allow a user these operations on a topic or a consumer group."""
    rights = [
        (kind, name, _LITERAL, f"User:{user}", "*", operation, _ALLOW) for operation in operations
    ]
    answer = await admin._send_to_controller(CreateAclsRequest(rights))
    assert [code for code, *_ in answer.results] == [0] * len(operations), answer
