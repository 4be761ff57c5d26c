"""The comment on a pull request, against a server that behaves like GitHub's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ci_build import LIMIT, TOKEN, Answer, FakeGitHub, fake_github

from prompts_agent.ci import http
from prompts_agent.ci.comment import GitHub, post
from prompts_agent.errors import InputError, OutputError

BODY = "<!-- prompts:sharding -->\n\n### fsdp 4 → **16**\n"
OTHER = "<!-- prompts:serving -->\n\n### tensor 2\n"


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with fake_github() as served:
        yield served


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the client would have waited."""
    waited: list[float] = []
    plain = http.Api.__init__

    def patched(self: http.Api, url: str, headers: dict[str, str]) -> None:
        plain(self, url, headers, sleep=waited.append)

    monkeypatch.setattr(http.Api, "__init__", patched)
    return waited


def forge(hub: FakeGitHub, token: str = TOKEN) -> GitHub:
    return GitHub("o/r", 7, token, hub.url)


def test_the_first_run_creates_and_later_ones_update(hub: FakeGitHub) -> None:
    hub.comments = {3: "Nice work!", 4: OTHER}
    first = post(BODY, forge(hub))
    assert (first.action, first.url) == ("created", "https://forge.test/c/5")
    again = post(BODY + "new\n", forge(hub))
    assert (again.action, again.url) == ("updated", "https://forge.test/c/5")
    assert hub.comments == {3: "Nice work!", 4: OTHER, 5: BODY + "new\n"}


def test_an_equal_comment_is_left_alone(hub: FakeGitHub) -> None:
    hub.comments = {5: BODY.strip()}  # GitHub strips what it stores
    assert post(BODY, forge(hub)).action == "unchanged"
    assert [method for method, _ in hub.requests] == ["GET"]


def test_a_comment_on_a_later_page_is_found(hub: FakeGitHub) -> None:
    hub.per_page = 2
    hub.comments = dict.fromkeys(range(1, 6), "talk") | {6: BODY}
    assert post(BODY + "new", forge(hub)).action == "updated"
    assert [method for method, _ in hub.requests] == ["GET", "GET", "GET", "PATCH"]


def test_a_quotation_of_the_marker_is_not_ours(hub: FakeGitHub) -> None:
    hub.comments = {1: "> " + BODY}
    assert post(BODY, forge(hub)).action == "created"


def test_a_comment_that_may_not_be_edited_is_left(hub: FakeGitHub) -> None:
    hub.comments = {1: BODY + "somebody's copy"}
    hub.locked = {1}
    assert post(BODY, forge(hub)).action == "created"
    assert hub.comments == {1: BODY + "somebody's copy", 2: BODY}


def test_a_dry_run_writes_nothing(hub: FakeGitHub) -> None:
    assert post(BODY, forge(hub), dry_run=True).action == "created"
    hub.comments = {1: BODY + "old"}
    assert post(BODY, forge(hub), dry_run=True).action == "updated"
    assert {method for method, _ in hub.requests} == {"GET"}


def test_a_secondary_rate_limit_is_waited_out(hub: FakeGitHub, waits: list[float]) -> None:
    hub.faults = [
        Answer(403, "You have exceeded a secondary rate limit", {"Retry-After": "7"}),
        Answer(429, "slow down", {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "0"}),
        Answer(403, "You have exceeded a secondary rate limit"),
    ]
    assert post(BODY, forge(hub)).action == "created"
    # Retry-After as given; a reset that is past, at once; no header, a minute, as GitHub asks.
    assert waits == [7.0, 0.0, 60.0]


def test_a_limit_of_an_hour_is_not_waited_out(hub: FakeGitHub, waits: list[float]) -> None:
    hub.faults = [Answer(403, "API rate limit exceeded", {"Retry-After": "3000"})]
    with pytest.raises(OutputError, match="answered 403: API rate limit exceeded"):
        post(BODY, forge(hub))
    assert waits == []


def test_a_listing_is_asked_again_after_5xx_and_a_creation_is_not(
    hub: FakeGitHub, waits: list[float]
) -> None:
    hub.faults = [Answer(502)]
    post(BODY, forge(hub), dry_run=True)
    assert waits == [1.0]
    hub.comments = {}
    hub.faults = []

    api = http.Api(hub.url, {"Authorization": f"Bearer {TOKEN}"})
    hub.faults = [Answer(502)]
    with pytest.raises(OutputError, match="answered 502"):
        api.send("POST", "/repos/o/r/issues/7/comments", {"body": BODY})
    assert hub.comments == {}


@pytest.mark.parametrize(
    ("answer", "said", "cure"),
    [
        (Answer(403, "Resource not accessible by integration"), "403", "pull-requests: write"),
        (Answer(404, "Not Found"), "404", "repository"),
        (Answer(422, "Validation Failed"), "422: Validation Failed", "refused the content"),
    ],
)
def test_refusals_say_what_to_do(hub: FakeGitHub, answer: Answer, said: str, cure: str) -> None:
    hub.faults = [answer]
    with pytest.raises(OutputError) as caught:
        post(BODY, forge(hub))
    assert said in caught.value.rule
    assert cure in caught.value.cure


def test_a_wrong_token_is_not_shown(hub: FakeGitHub) -> None:
    with pytest.raises(OutputError) as caught:
        post(BODY, forge(hub, token="wrong-secret"))
    assert "answered 401: Bad credentials" in caught.value.rule
    assert "wrong-secret" not in str(caught.value)


def test_nobody_answers(waits: list[float]) -> None:
    with fake_github() as gone:
        pass
    with pytest.raises(OutputError, match="did not answer: ConnectError"):
        post(BODY, forge(gone))
    assert waits == [1.0, 2.0, 4.0]


def test_a_next_page_elsewhere_does_not_get_the_token(hub: FakeGitHub) -> None:
    hub.faults = [Answer(200, "", {"Link": '<http://elsewhere.test/x>; rel="next"'})]
    with pytest.raises(OutputError, match="another host"):
        http.Api(hub.url, {"Authorization": TOKEN}).pages("/repos/o/r/issues/7/comments")


def test_only_text_with_a_marker_and_of_a_comment_s_length_is_sent(hub: FakeGitHub) -> None:
    with pytest.raises(InputError, match="begins with its marker"):
        post("### hello", forge(hub))
    with pytest.raises(InputError, match=r"65,562 characters: a comment holds at most 65,536"):
        post(BODY.split("\n", maxsplit=1)[0] + "x" * (LIMIT + 1), forge(hub))
    assert hub.requests == []


def test_a_repository_cannot_lead_elsewhere(hub: FakeGitHub) -> None:
    with pytest.raises(InputError, match="owner/name"):
        GitHub("o/r/../../user", 7, TOKEN, hub.url)
