"""Table calls per request, at the default limits."""

from tests.support.recorded import recorded_calls


def writes(api, secret, count):
    """Sends requests that succeed. Returns the number of writes of each."""
    made = []
    for _ in range(count):
        with recorded_calls() as calls:
            assert api.get("/v1/me", secret).status == 200
        made.append(sum(call.operation == "UpdateItem" for call in calls))
    return made


def test_a_token_costs_one_write_and_every_12th_request_one_more(api, world):
    # The first request of a minute also creates the credential's window.
    assert writes(api, world.person().token, 26) == [3, *[1] * 11, 2, *[1] * 11, 2, 1]


def test_a_token_costs_two_writes_after_half_of_the_limit(api, world, limit):
    limit(requests_per_minute_user=240)  # blocks of 2
    # The request that exceeds half also notes where its block ends.
    assert writes(api, world.person().token, 125) == [3, 1, *[2, 1] * 59, 3, 1, 2, 2, 2]


def test_a_key_costs_one_write_and_every_30th_request_one_more(api, world):
    secret = world.key(world.company("pro"))
    writes(api, secret, 1)  # also notes the key's last use
    assert writes(api, secret, 60) == [*[1] * 28, 2, *[1] * 29, 2, 1]


def test_a_refused_person_costs_one_write_per_request_and_up_to_ten_records(api, world, limit):
    token = world.company("pro").owner.token
    for _ in range(24):  # below the lowest limit, the plan isn't read
        with recorded_calls() as calls:
            api.get("/v1/members", token)  # a list of projects reads the plan for their branding
        assert [call.operation for call in calls if call.operation != "UpdateItem"] == ["Query", "Query"]
    limit(requests_per_minute_user=1)
    token = world.person().token
    for expected in ((200, 3), (429, 4), *[(429, 2)] * 9, (429, 1), (429, 1)):
        with recorded_calls() as calls:
            status = api.get("/v1/me", token).status
        assert (status, sum(call.operation == "UpdateItem" for call in calls)) == expected
