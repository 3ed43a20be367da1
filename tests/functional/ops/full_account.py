"""A person who has data in every kind of item that can hold a person's data."""

from typing import Any

import pytest

from controlplane.access import sign_in
from controlplane.feedback import store as feedback
from controlplane.findings import inbox
from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.people import device, device_approvals, sessions, token_families
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.support.api import Api
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World, get_profile, table_dump

CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
EMAIL, NAME, TEXT = "canary.ada+x@example.com", "Canary Lovelace", "canary words of hers"
DEVICE, ADDRESS = "Canary's laptop", "203.0.113.77"
CANARIES = ("canary", NAME, EMAIL, TEXT, DEVICE, ADDRESS)


class FullAccount:
    def __init__(self, world: World, api: Api) -> None:
        self.world = world
        self.identity = sign_in.Claims(
            issuer="https://issuer.example",
            subject="canary-subject",
            email=EMAIL,
            email_verified=True,
            name=NAME,
            image=None,
        )
        self.user_id = sign_in.sign_in(self.identity).user_id
        self.session = sessions.create(self.user_id)
        self.token = world.token(self.user_id)
        self.person = Person(self.user_id, EMAIL, NAME, self.token)
        self.company: Company = world.company()
        world.member(self.company, "owner", self.person)
        organizations.save_default(self.user_id, self.company.organization_id)
        self._devices()
        self._words(api)
        self._invitations(api)
        self.secrets = [self.session, self.token, self.pair.access_token, self.pair.refresh_token, self.device_code]

    def _devices(self) -> None:
        codes = []
        for _ in range(2):
            issued = device.create("assent-cli", CHALLENGE, ["projects.read"], DEVICE, ADDRESS)
            device_approvals.approve(issued.user_code, self.user_id, ["projects.read"])
            codes.append(issued.device_code)
        request = device.find(codes[0])
        assert request is not None
        self.pair = device.redeem(request)
        self.device_code = codes[1]
        with pytest.raises(device_approvals.UnknownUserCode):
            device_approvals.find_by_user_code("BCDF-GHJK", self.user_id)

    def _words(self, api: Api) -> None:
        feedback.submit_report(self.user_id, {"category": "bug", "message": TEXT})
        feedback.submit_report(self.user_id, {"category": "bug", "message": f"{TEXT} " * 100})
        # A report whose item under its caller is lost.
        report = {"category": "friction", "message": TEXT, "expected": TEXT}
        receipt = feedback.submit_report(self.user_id, report)
        table.delete_all([keys.feedback_by(self.user_id, receipt.reference)], PREPARED)
        found = self.world.finding(self.company)
        inbox.change_status(found, "dismissed", found.version, self.user_id, TEXT)
        self.item_id = found.item_id
        headers = {"Idempotency-Key": "k1"}
        path = f"/v1/api-keys?organizationId={self.company.organization_id}"
        assert api.post(path, self.token, json_body={"name": "deploy"}, headers=headers).status == 201

    def _invitations(self, api: Api) -> None:
        path = f"/v1/invitations?organizationId={self.company.organization_id}"
        body = {"email": "friend@example.com", "role": "member"}
        assert api.post(path, self.token, json_body=body, headers={"Idempotency-Key": "k2"}).status == 201
        inviting = self.world.company()
        body = {"email": EMAIL.upper(), "role": "member"}
        headers = {"Idempotency-Key": "k3"}
        assert api.post("/v1/invitations", inviting.owner.token, json_body=body, headers=headers).status == 201
        unwanted = self.world.invitation(self.world.company(), EMAIL)
        invitees.block_organization(InvitationId.stored(unwanted.invitation_id), get_profile(self.user_id))

    def naming(self) -> list[dict[str, Any]]:
        """Returns every item in the table that refers to the person."""
        part = self.user_id.removeprefix("usr_")
        return [it for it in table_dump() if part in str(it) or "canary" in str(it).lower()]

    @property
    def bearers(self) -> list[str]:
        return [self.session, self.token, self.pair.access_token]

    def statuses(self, api: Api) -> list[int]:
        return [api.get("/v1/me", bearer).status for bearer in self.bearers]

    def assert_out(self, api: Api) -> None:
        """Asserts that no credential works anymore: bearers, a refresh token, and a device that waits for its code."""
        assert self.statuses(api) == [401, 401, 401]
        waiting = device.find(self.device_code)
        assert waiting is None or waiting.status == "denied"
        with pytest.raises(token_families.UnknownRefreshToken):
            token_families.rotate(self.pair.refresh_token)
