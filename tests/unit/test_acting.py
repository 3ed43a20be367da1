"""The actor and the request that entries of the audit log name."""

import pytest

from controlplane.platform.core import acting
from controlplane.platform.core.acting import Actor


def test_a_request_has_an_id_and_an_actor_only_once_its_credential_is_authenticated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "sweeper")
    with acting.request("request-1"):
        assert acting.request_id() == "request-1"
        with pytest.raises(LookupError):
            acting.current()
        ada = Actor("person", "usr_1", "api")
        acting.identify(ada)
        assert acting.current() == (ada, "request-1")
    assert acting.request_id() is None
    assert acting.current() == (Actor("service", "sweeper", "worker"), None)
