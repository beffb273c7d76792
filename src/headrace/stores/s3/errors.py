"""What went wrong at S3, as the errors of all stores."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    ParamValidationError,
    SSLError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from headrace.connect.errors import TaskFailedError
from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectArchivedError,
    ObjectChangedError,
    ObjectGoneError,
    StoreUnavailableError,
)

_PASSING = frozenset(
    {
        "BandwidthLimitExceeded",
        "ConditionalRequestConflict",
        "InternalError",
        "OperationAborted",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_GONE = frozenset({"NoSuchKey", "NoSuchVersion"})
_CONNECTION = (
    BotoConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ResponseParserError,
    HTTPError,
)


@contextmanager
def telling(store: str, key: str | None, asked: str) -> Generator[None]:
    """Turn what boto3 raises inside into ``Store``'s errors; *asked* is the operation's name."""
    try:
        yield
    except ClientError as error:
        raise of_answer(store, key, asked, error) from error
    except ParamValidationError as error:
        if key is None:
            raise TaskFailedError(f"{store}: {asked}: {error}") from error
        raise KeyNotRepresentableError(store, key, "S3 has no such keys.") from error
    except _CONNECTION as error:
        if isinstance(error, SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise TaskFailedError(
                f"{store}: {error} Check s3.endpoint, or name the certificates to trust in s3.tls.ca.file."
            ) from error
        raise StoreUnavailableError(f"{_place(store, key)}: {asked}: {error}") from error
    except BotoCoreError as error:
        raise TaskFailedError(
            f"{store}: {asked}: {error} Check the credentials and s3.region."
        ) from error


def of_answer(
    store: str, key: str | None, asked: str, error: ClientError
) -> TaskFailedError | StoreUnavailableError:
    """What the server's answer to *asked* means."""
    status, code = status_of(error), code_of(error)
    told = f"{_place(store, key)}: {asked}: {status} {error.response.get('Error', {}).get('Message', code)}"
    passing = status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.NOT_IMPLEMENTED
    if code in _PASSING or passing or status == HTTPStatus.TOO_MANY_REQUESTS:
        return StoreUnavailableError(told)
    if key is not None:
        if status == HTTPStatus.PRECONDITION_FAILED:
            return ObjectChangedError(store, key, "It is another version by now.")
        # An answer to HEAD has no body, so no code that would tell a missing bucket from a missing key.
        if code in _GONE or code == str(HTTPStatus.NOT_FOUND.value):
            return ObjectGoneError(store, key)
        if code == "KeyTooLongError":
            return KeyNotRepresentableError(store, key, "It is too long for S3.")
        if code == "InvalidObjectState":
            return ObjectArchivedError(store, key, "It lies in an archive. Restore it first.")
    return TaskFailedError(f"{told} ({code}). Check the bucket, the credentials and their rights.")


def status_of(error: ClientError) -> int:
    """The HTTP status of the answer; 0 where there is none."""
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def code_of(error: ClientError) -> str:
    """S3's word for what is wrong, or the HTTP status where the answer has none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _place(store: str, key: str | None) -> str:
    return store if key is None else f"{store}: {key!r}"
