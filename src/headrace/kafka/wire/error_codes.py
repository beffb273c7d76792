"""Every error code of Kafka's protocol, and what a reader does about it."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Reaction(Enum):
    """What a reader does next."""

    RETRY = "retry"
    """Sends the same request to the same broker again, after a pause."""
    REFRESH_METADATA = "refresh metadata"
    """Asks who leads the partition now, and whether the topic is still the same one, then sends the request again."""
    FIND_COORDINATOR = "find coordinator"
    """Asks who coordinates the group now, then sends the request again, after a pause; one that only loads is not left."""
    OUT_OF_RANGE = "out of range"
    """The offset is not in the log: raised with the log's bounds, for a policy to decide."""
    FAIL = "fail"
    """Raised with the advice: no retry can resolve it."""


class ErrorCode(NamedTuple):
    """An error code; *name* is Kafka's own, *advice* is a sentence for a user, or empty."""

    code: int
    name: str
    reaction: Reaction
    advice: str = ""


NONE: Final = 0
"""The code of an answer without an error."""

_RETRY = Reaction.RETRY
_REFRESH = Reaction.REFRESH_METADATA
_COORDINATOR = Reaction.FIND_COORDINATOR
_FAIL = Reaction.FAIL

_LOGIN = "Check security.protocol and the sasl.* settings of this client."
_MEMBERS = "Consumers that are members of the group use it now; choose a group that no consumer has joined."
_OUR_REQUEST = "A request that headrace has sent does not suit this broker; please report this with the broker's version."

_ERROR_CODES: Final = (
    ErrorCode(-1, "UNKNOWN_SERVER_ERROR", _RETRY),
    ErrorCode(1, "OFFSET_OUT_OF_RANGE", Reaction.OUT_OF_RANGE),
    ErrorCode(
        2,
        "CORRUPT_MESSAGE",
        _FAIL,
        "The log of the partition's leader is damaged there; check the broker's log and disk.",
    ),
    ErrorCode(3, "UNKNOWN_TOPIC_OR_PARTITION", _REFRESH),
    ErrorCode(4, "INVALID_FETCH_SIZE", _FAIL, _OUR_REQUEST),
    ErrorCode(5, "LEADER_NOT_AVAILABLE", _REFRESH),
    ErrorCode(6, "NOT_LEADER_OR_FOLLOWER", _REFRESH),
    ErrorCode(7, "REQUEST_TIMED_OUT", _RETRY),
    ErrorCode(8, "BROKER_NOT_AVAILABLE", _REFRESH),
    ErrorCode(9, "REPLICA_NOT_AVAILABLE", _REFRESH),
    ErrorCode(10, "MESSAGE_TOO_LARGE", _FAIL),
    ErrorCode(11, "STALE_CONTROLLER_EPOCH", _FAIL),
    ErrorCode(12, "OFFSET_METADATA_TOO_LARGE", _FAIL, _OUR_REQUEST),
    ErrorCode(13, "NETWORK_EXCEPTION", _REFRESH),
    ErrorCode(14, "COORDINATOR_LOAD_IN_PROGRESS", _RETRY),
    ErrorCode(15, "COORDINATOR_NOT_AVAILABLE", _COORDINATOR),
    ErrorCode(16, "NOT_COORDINATOR", _COORDINATOR),
    ErrorCode(
        17,
        "INVALID_TOPIC_EXCEPTION",
        _FAIL,
        "Use letters, digits, '.', '_' and '-' in topic names, at most 249.",
    ),
    ErrorCode(18, "RECORD_LIST_TOO_LARGE", _FAIL),
    ErrorCode(19, "NOT_ENOUGH_REPLICAS", _RETRY),
    ErrorCode(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", _RETRY),
    ErrorCode(21, "INVALID_REQUIRED_ACKS", _FAIL),
    ErrorCode(22, "ILLEGAL_GENERATION", _FAIL, _MEMBERS),
    ErrorCode(23, "INCONSISTENT_GROUP_PROTOCOL", _FAIL),
    ErrorCode(24, "INVALID_GROUP_ID", _FAIL, "Choose a group id that is not empty."),
    ErrorCode(25, "UNKNOWN_MEMBER_ID", _FAIL, _MEMBERS),
    ErrorCode(26, "INVALID_SESSION_TIMEOUT", _FAIL),
    ErrorCode(27, "REBALANCE_IN_PROGRESS", _FAIL, _MEMBERS),
    ErrorCode(28, "INVALID_COMMIT_OFFSET_SIZE", _FAIL),
    ErrorCode(
        29,
        "TOPIC_AUTHORIZATION_FAILED",
        _FAIL,
        "Grant this client Read and Describe on the topic.",
    ),
    ErrorCode(
        30,
        "GROUP_AUTHORIZATION_FAILED",
        _FAIL,
        "Grant this client Read and Describe on the group.",
    ),
    ErrorCode(
        31, "CLUSTER_AUTHORIZATION_FAILED", _FAIL, "Grant this client Describe on the cluster."
    ),
    ErrorCode(32, "INVALID_TIMESTAMP", _FAIL),
    ErrorCode(33, "UNSUPPORTED_SASL_MECHANISM", _FAIL, "Choose another sasl.mechanism."),
    ErrorCode(34, "ILLEGAL_SASL_STATE", _FAIL, _LOGIN),
    ErrorCode(35, "UNSUPPORTED_VERSION", _FAIL, "Use a broker of version 0.11 or newer."),
    ErrorCode(36, "TOPIC_ALREADY_EXISTS", _FAIL),
    ErrorCode(37, "INVALID_PARTITIONS", _FAIL),
    ErrorCode(38, "INVALID_REPLICATION_FACTOR", _FAIL),
    ErrorCode(39, "INVALID_REPLICA_ASSIGNMENT", _FAIL),
    ErrorCode(40, "INVALID_CONFIG", _FAIL),
    ErrorCode(41, "NOT_CONTROLLER", _REFRESH),
    ErrorCode(42, "INVALID_REQUEST", _FAIL, _OUR_REQUEST),
    ErrorCode(
        43,
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        _FAIL,
        "The topic holds records of an old message format, which have no timestamps; start from an offset, or from "
        "the earliest one.",
    ),
    ErrorCode(
        44,
        "POLICY_VIOLATION",
        _FAIL,
        "Ask the cluster's administrator which policy this violates.",
    ),
    ErrorCode(45, "OUT_OF_ORDER_SEQUENCE_NUMBER", _FAIL),
    ErrorCode(46, "DUPLICATE_SEQUENCE_NUMBER", _FAIL),
    ErrorCode(47, "INVALID_PRODUCER_EPOCH", _FAIL),
    ErrorCode(48, "INVALID_TXN_STATE", _FAIL),
    ErrorCode(49, "INVALID_PRODUCER_ID_MAPPING", _FAIL),
    ErrorCode(50, "INVALID_TRANSACTION_TIMEOUT", _FAIL),
    ErrorCode(51, "CONCURRENT_TRANSACTIONS", _RETRY),
    ErrorCode(52, "TRANSACTION_COORDINATOR_FENCED", _FAIL),
    ErrorCode(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", _FAIL),
    ErrorCode(54, "SECURITY_DISABLED", _FAIL),
    ErrorCode(55, "OPERATION_NOT_ATTEMPTED", _FAIL),
    ErrorCode(56, "KAFKA_STORAGE_ERROR", _REFRESH),
    ErrorCode(57, "LOG_DIR_NOT_FOUND", _FAIL),
    ErrorCode(58, "SASL_AUTHENTICATION_FAILED", _FAIL, _LOGIN),
    ErrorCode(59, "UNKNOWN_PRODUCER_ID", _FAIL),
    ErrorCode(60, "REASSIGNMENT_IN_PROGRESS", _FAIL),
    ErrorCode(61, "DELEGATION_TOKEN_AUTH_DISABLED", _FAIL),
    ErrorCode(62, "DELEGATION_TOKEN_NOT_FOUND", _FAIL),
    ErrorCode(63, "DELEGATION_TOKEN_OWNER_MISMATCH", _FAIL),
    ErrorCode(64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", _FAIL),
    ErrorCode(65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", _FAIL),
    ErrorCode(66, "DELEGATION_TOKEN_EXPIRED", _FAIL),
    ErrorCode(67, "INVALID_PRINCIPAL_TYPE", _FAIL),
    ErrorCode(68, "NON_EMPTY_GROUP", _FAIL, _MEMBERS),
    ErrorCode(69, "GROUP_ID_NOT_FOUND", _FAIL, "No group of this id exists; check its name."),
    ErrorCode(70, "FETCH_SESSION_ID_NOT_FOUND", _RETRY),
    ErrorCode(71, "INVALID_FETCH_SESSION_EPOCH", _RETRY),
    ErrorCode(72, "LISTENER_NOT_FOUND", _REFRESH),
    ErrorCode(73, "TOPIC_DELETION_DISABLED", _FAIL),
    ErrorCode(74, "FENCED_LEADER_EPOCH", _REFRESH),
    ErrorCode(75, "UNKNOWN_LEADER_EPOCH", _REFRESH),
    ErrorCode(
        76,
        "UNSUPPORTED_COMPRESSION_TYPE",
        _FAIL,
        "The topic holds zstd, which this broker hands out to newer clients only; use a broker of version 2.1 or newer.",
    ),
    ErrorCode(77, "STALE_BROKER_EPOCH", _FAIL),
    ErrorCode(78, "OFFSET_NOT_AVAILABLE", _RETRY),
    ErrorCode(79, "MEMBER_ID_REQUIRED", _FAIL),
    ErrorCode(80, "PREFERRED_LEADER_NOT_AVAILABLE", _REFRESH),
    ErrorCode(81, "GROUP_MAX_SIZE_REACHED", _FAIL),
    ErrorCode(82, "FENCED_INSTANCE_ID", _FAIL, _MEMBERS),
    ErrorCode(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", _REFRESH),
    ErrorCode(84, "ELECTION_NOT_NEEDED", _FAIL),
    ErrorCode(85, "NO_REASSIGNMENT_IN_PROGRESS", _FAIL),
    ErrorCode(86, "GROUP_SUBSCRIBED_TO_TOPIC", _FAIL, _MEMBERS),
    ErrorCode(87, "INVALID_RECORD", _FAIL),
    ErrorCode(88, "UNSTABLE_OFFSET_COMMIT", _RETRY),
    ErrorCode(89, "THROTTLING_QUOTA_EXCEEDED", _RETRY),
    ErrorCode(90, "PRODUCER_FENCED", _FAIL),
    ErrorCode(91, "RESOURCE_NOT_FOUND", _FAIL),
    ErrorCode(92, "DUPLICATE_RESOURCE", _FAIL),
    ErrorCode(93, "UNACCEPTABLE_CREDENTIAL", _FAIL),
    ErrorCode(94, "INCONSISTENT_VOTER_SET", _FAIL),
    ErrorCode(95, "INVALID_UPDATE_VERSION", _FAIL),
    ErrorCode(96, "FEATURE_UPDATE_FAILED", _FAIL),
    ErrorCode(97, "PRINCIPAL_DESERIALIZATION_FAILURE", _FAIL),
    ErrorCode(98, "SNAPSHOT_NOT_FOUND", _FAIL),
    ErrorCode(99, "POSITION_OUT_OF_RANGE", _FAIL),
    ErrorCode(100, "UNKNOWN_TOPIC_ID", _REFRESH),
    ErrorCode(101, "DUPLICATE_BROKER_REGISTRATION", _FAIL),
    ErrorCode(102, "BROKER_ID_NOT_REGISTERED", _FAIL),
    ErrorCode(103, "INCONSISTENT_TOPIC_ID", _REFRESH),
    ErrorCode(104, "INCONSISTENT_CLUSTER_ID", _FAIL),
    ErrorCode(105, "TRANSACTIONAL_ID_NOT_FOUND", _FAIL),
    ErrorCode(106, "FETCH_SESSION_TOPIC_ID_ERROR", _RETRY),
    ErrorCode(107, "INELIGIBLE_REPLICA", _FAIL),
    ErrorCode(108, "NEW_LEADER_ELECTED", _FAIL),
    ErrorCode(109, "OFFSET_MOVED_TO_TIERED_STORAGE", _FAIL),
    ErrorCode(110, "FENCED_MEMBER_EPOCH", _FAIL, _MEMBERS),
    ErrorCode(111, "UNRELEASED_INSTANCE_ID", _FAIL, _MEMBERS),
    ErrorCode(112, "UNSUPPORTED_ASSIGNOR", _FAIL),
    ErrorCode(113, "STALE_MEMBER_EPOCH", _FAIL, _MEMBERS),
    ErrorCode(114, "MISMATCHED_ENDPOINT_TYPE", _FAIL, "Check bootstrap.servers."),
    ErrorCode(115, "UNSUPPORTED_ENDPOINT_TYPE", _FAIL, "Check bootstrap.servers."),
    ErrorCode(116, "UNKNOWN_CONTROLLER_ID", _FAIL),
    ErrorCode(117, "UNKNOWN_SUBSCRIPTION_ID", _FAIL),
    ErrorCode(118, "TELEMETRY_TOO_LARGE", _FAIL),
    ErrorCode(119, "INVALID_REGISTRATION", _FAIL),
    ErrorCode(120, "TRANSACTION_ABORTABLE", _FAIL),
    ErrorCode(121, "INVALID_RECORD_STATE", _FAIL),
    ErrorCode(122, "SHARE_SESSION_NOT_FOUND", _FAIL),
    ErrorCode(123, "INVALID_SHARE_SESSION_EPOCH", _FAIL),
    ErrorCode(124, "FENCED_STATE_EPOCH", _FAIL),
    ErrorCode(125, "INVALID_VOTER_KEY", _FAIL),
    ErrorCode(126, "DUPLICATE_VOTER", _FAIL),
    ErrorCode(127, "VOTER_NOT_FOUND", _FAIL),
    ErrorCode(128, "INVALID_REGULAR_EXPRESSION", _FAIL),
    ErrorCode(129, "REBOOTSTRAP_REQUIRED", _REFRESH),
    ErrorCode(130, "STREAMS_INVALID_TOPOLOGY", _FAIL),
    ErrorCode(131, "STREAMS_INVALID_TOPOLOGY_EPOCH", _FAIL),
    ErrorCode(132, "STREAMS_TOPOLOGY_FENCED", _FAIL),
    ErrorCode(133, "SHARE_SESSION_LIMIT_REACHED", _FAIL),
)
_BY_CODE: Final = {each.code: each for each in _ERROR_CODES}
_BY_NAME: Final = {each.name: each for each in _ERROR_CODES}


def error_code(code: int) -> ErrorCode | None:
    """The entry of *code*, ``None`` for the code of success; a code of a newer Kafka fails as one that is not known."""
    if code == NONE:
        return None
    known = _BY_CODE.get(code)
    return known or ErrorCode(code, f"UNKNOWN_ERROR_CODE_{code}", _FAIL, _NEWER)


def named(name: str) -> ErrorCode:
    """The entry with Kafka's *name*; raises ``KeyError`` when there is none."""
    return _BY_NAME[name]


_NEWER: Final = "This version of headrace does not know that error code of a newer Kafka."
UNKNOWN: Final = _BY_CODE[-1]
LEADER_NOT_AVAILABLE: Final = _BY_CODE[5]
UNKNOWN_TOPIC_OR_PARTITION: Final = _BY_CODE[3]
UNSUPPORTED_VERSION: Final = _BY_CODE[35]
GROUP_ID_NOT_FOUND: Final = _BY_CODE[69]
UNSTABLE_OFFSET_COMMIT: Final = _BY_CODE[88]
