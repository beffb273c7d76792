"""Java's login line, as Kafka's Java clients read it."""

from __future__ import annotations

import pytest

from headrace.kafka.java_settings import jaas_settings

PACKAGE = "org.apache.kafka.common.security"
PLAIN = f"{PACKAGE}.plain.PlainLoginModule"
SCRAM = f"{PACKAGE}.scram.ScramLoginModule"
OAUTH = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule"


@pytest.mark.parametrize(
    ("options", "user", "password"),
    [
        ('username="me" password="s"', "me", "s"),
        ("username='me' password='s'", "me", "s"),
        ("username=me password=s-1.2_3$", "me", "s-1.2_3$"),
        ('password = "s"\n  username = "me"', "me", "s"),
        (r'username="me" password="a\"b\\c\t\101"', "me", 'a"b\\c\tA'),
        ('username="me" password="a;b=c d/*e*/"', "me", "a;b=c d/*e*/"),
        ('username="me" /* the user */ password="s" // the end\n', "me", "s"),
        ('username="me" password="s" user_other="theirs" serviceName=kafka', "me", "s"),
    ],
)
@pytest.mark.parametrize("module", [PLAIN, SCRAM])
def test_a_user_and_a_password(module: str, options: str, user: str, password: str):
    """Quoted in either way or not at all, in any order, among other options and comments."""
    found = jaas_settings(f"{module} required {options};")

    assert {"sasl.username": user, "sasl.password": password} == found


def test_the_flag_is_read_in_any_case():
    """It makes no difference with one module."""
    assert jaas_settings(f'{PLAIN} REQUISITE username="a" password="b";')


def test_a_client_of_a_token_endpoint():
    """The client asks the endpoint by itself."""
    line = f'{OAUTH} required clientId="me" clientSecret="s" scope="all";'

    assert {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "all",
    } == jaas_settings(line)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "Login module not specified in JAAS config"),
        (PLAIN, "Login module control flag not specified in JAAS config"),
        (f'{PLAIN} username="hush";', "Invalid login module control flag in JAAS config"),
        (f'{PLAIN} required username="hush"', "JAAS config entry not terminated by semi-colon"),
        (f"{PLAIN} required username=a password=hush//;", "not terminated by semi-colon"),
        (f"{PLAIN} required password=;", "Value not specified for key 'password' in JAAS config"),
        (f'{PLAIN} required password="hu"sh x;', "Value not specified for one of the keys"),
        (f'{PLAIN} required password="hu"sh";', "not terminated by semi-colon"),
        (f"{PLAIN} required username=a password=hush=;", "Value not specified for one of the keys"),
        (f'{PLAIN} required password="hush";', "username must be given"),
        (f'{PLAIN} required username="hush" password="";', "password must be given"),
        (f"{PLAIN} required;{SCRAM} required;", "more than one login module"),
        (f'{SCRAM} required username="a" password="hush" tokenauth="true";', "tokenauth"),
        (
            'com.sun.security.auth.module.Krb5LoginModule required principal="hush";',
            "The login module com.sun.security.auth.module.Krb5LoginModule is not supported",
        ),
    ],
)
def test_what_is_wrong_is_reported_without_secrets(line: str, told: str):
    """In the words of Kafka's Java clients, where they have them."""
    with pytest.raises(ValueError, match=r"\.$") as caught:
        jaas_settings(line)

    assert told in str(caught.value)
    assert "hu" not in str(caught.value)
