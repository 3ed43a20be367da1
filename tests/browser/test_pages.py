"""People sign in, approve and deny devices, and answer invitations. Each page has zero violations of axe's rules."""

from collections.abc import Callable

from tests.browser.conftest import LOOKS, Stack, Visit, is_refusal


def signed_in(visit: Visit, path: str = "/organizations", role: str = "owner") -> Visit:
    visit.open(path)
    visit.sign_in(visit.stack.person(role))
    return visit


@LOOKS
class TestEachViewport:
    def test_a_device_is_approved_by_its_link(self, stack: Stack, visit: Callable[..., Visit], width, scheme):
        person = visit(width, scheme)
        device = stack.device()
        person.open(device.link.removeprefix(stack.base_url))
        person.sign_in(stack.person())
        person.look("Approve a device", "device-link")
        person.press("Continue")
        person.look("Approve this device?", "device-review")
        assert device.redeem()[0] == 409
        person.press("Approve")
        person.look("Device approved", "device-approved")
        status, answer = device.redeem()
        assert status == 200
        status, me = stack.call("/v1/me", token=answer["data"]["accessToken"])
        assert me["data"]["principal"]["userId"] == stack.person()["userId"]

    def test_a_device_is_denied_by_its_code(self, stack: Stack, visit: Callable[..., Visit], width, scheme):
        # Not the same user as in the other tests: too many wrong codes cause a wait.
        person = signed_in(visit(width, scheme), "/device", "admin")
        device = stack.device()
        person.page.get_by_label("Code").fill("nonsense")
        person.press("Continue")
        person.look("Approve a device", "device-unknown")
        person.page.get_by_label("Code").fill(device.userCode.lower())
        person.press("Continue")
        person.press("Deny")
        person.look("Device denied", "device-denied")
        assert device.redeem()[0] == 403

    def test_an_accepted_invitations_organization_becomes_the_default(
        self, stack: Stack, visit: Callable[..., Visit], invitation: Callable[[str], str], width, scheme
    ):
        invited = stack.person("member")
        name, declined = invitation(invited["email"]), invitation(invited["email"])
        person = signed_in(visit(width, scheme), "/invitations", "member")
        person.look("Invitations", "invitations")
        person.open("/")
        person.look("Hello, ", "overview")
        person.open("/invitations")
        person.press(f"Accept the invitation to {name}")
        person.page.get_by_role("status").get_by_text(f"You are now an admin of {name}.").wait_for()
        person.look(name, "invitation-accepted")
        person.open("/invitations")
        person.press(f"Decline the invitation to {declined}")
        person.look("Invitations", "invitations-none")
        person.open("/organizations")
        person.look("Organizations", "organizations")
        person.press(f"Make default organization: {name}")
        person.look("Organizations", "organization-saved")
        active = stack.call("/v1/me", token=invited["accessToken"])[1]["data"]["activeOrganizationId"]
        found = stack.call("/v1/organizations", token=invited["accessToken"])[1]["data"]
        assert name in [it["organizationName"] for it in found if it["organizationId"] == active]

    def test_an_owner_deletes_an_organization_by_its_name(
        self, stack: Stack, visit: Callable[..., Visit], width, scheme
    ):
        owner = stack.person()
        name = f"Aspen {width} {scheme}"
        status, made = stack.call("/v1/organizations", {"name": name}, owner["accessToken"])
        assert status == 201, made
        person = signed_in(visit(width, scheme), f"/organizations/{made['data']['slug']}/settings")
        person.page.get_by_role("link", name=f"Delete {name}").click()
        person.look(f"Delete {name}?", "organization-delete")
        person.page.get_by_label("Name of the organization").fill("Another one")
        person.press("Delete this organization")
        person.look(f"Delete {name}?", "organization-not-deleted")
        person.page.get_by_label("Name of the organization").fill(name)
        person.press("Delete this organization")
        person.page.get_by_role("status").get_by_text("The organization is deleted.").wait_for()
        person.look("Organizations", "organization-deleted")
        found = stack.call("/v1/organizations", token=owner["accessToken"])[1]["data"]
        assert name not in [it["organizationName"] for it in found]

    def test_a_device_is_revoked_and_then_all_others(self, stack: Stack, visit: Callable[..., Visit], width, scheme):
        person = visit(width, scheme)
        device, other = stack.device(), stack.device()
        person.open(device.link.removeprefix(stack.base_url))
        person.sign_in(stack.person("admin"))
        tokens = []
        for asking in (device, other):
            person.open(asking.link.removeprefix(stack.base_url))
            person.press("Continue")
            person.page.get_by_label("projects.write").uncheck()
            person.press("Approve")
            person.page.get_by_role("heading", name="Device approved").wait_for()
            answer = asking.redeem()[1]["data"]
            assert "projects.write" not in answer["scope"]
            tokens.append(answer["accessToken"])
        person.open("/sessions")
        person.look("Devices and sessions", "sessions")
        person.page.get_by_role("button", name="Revoke Device: Ada's laptop").first.click()
        person.page.get_by_role("status").get_by_text("Revoked. It no longer has access.").wait_for()
        person.look("Devices and sessions", "session-revoked")
        assert sorted(stack.call("/v1/me", token=token)[0] for token in tokens) == [200, 401]
        person.press("Revoke all others")
        person.page.get_by_role("status").get_by_text("Only this session has access now.").wait_for()
        person.look("Devices and sessions", "sessions-others-revoked")
        assert [stack.call("/v1/me", token=token)[0] for token in tokens] == [401, 401]

    def test_signing_out_ends_the_session(self, visit: Callable[..., Visit], width, scheme):
        person = visit(width, scheme)
        person.open("/")
        person.look("Find the trackers that run before consent", "welcome")
        person.page.get_by_role("link", name="Sign in").click()
        person.sign_in(person.stack.person("admin"))
        person.page.locator("summary", has_text="Your account").wait_for()
        person.open("/organizations")
        person.look("Organizations", "organizations-signed-in")
        (session,) = [it for it in person.context.cookies() if it["name"] == "assent-session"]
        assert (session["httpOnly"], session["sameSite"]) == (True, "Lax")
        assert person.stack.call("/v1/me", token=session["value"])[0] == 200
        person.sign_out()
        person.look("You are signed out", "signed-out")
        assert person.stack.call("/v1/me", token=session["value"])[0] == 401
        person.page.get_by_role("link", name="Sign out there too").click()
        person.look("You are signed out", "signed-out-there")
        person.open("/organizations")
        person.page.locator("[name=password]").wait_for()

    def test_an_error_is_a_page_too(self, visit: Callable[..., Visit], width, scheme):
        person = visit(width, scheme)
        person.open("/sign-in/callback?code=x&state=y")
        person.look("You aren't signed in", "refused")


class TestWithoutScripts:
    def test_everything_works_without_scripts(
        self, stack: Stack, visit: Callable[..., Visit], invitation: Callable[[str], str]
    ):
        invited = stack.person("admin")
        name = invitation(invited["email"])
        person = signed_in(visit(scripts=False), "/invitations", "admin")
        person.press(f"Accept the invitation to {name}")
        person.page.get_by_text(f"You are now an admin of {name}").wait_for()
        device = stack.device()
        person.open(device.link.removeprefix(stack.base_url))
        person.press("Continue")
        person.press("Approve")
        person.page.get_by_role("heading", name="Device approved").wait_for()
        assert device.redeem()[0] == 200
        person.sign_out()
        person.page.get_by_role("heading", name="You are signed out").wait_for()


class TestByKeyboard:
    def test_a_device_can_be_approved_by_keyboard(self, stack: Stack, visit: Callable[..., Visit]):
        person = signed_in(visit(), "/device")
        device = stack.device()
        keyboard = person.page.keyboard
        person.arrive("Approve a device")
        keyboard.press("Tab")
        assert _focus(person) == "Skip to the content"
        keyboard.press("Enter")
        person.page.locator("#content:focus").wait_for()
        # The content begins with the links to the pages above this one.
        trail = person.page.get_by_role("navigation", name="Breadcrumb").get_by_role("link").count()
        for _ in range(trail + 1):
            keyboard.press("Tab")
        assert person.page.evaluate("document.activeElement.id") == "user_code"
        keyboard.type(device.userCode)
        keyboard.press("Enter")
        person.arrive("Approve this device?")
        for _ in range(30):
            keyboard.press("Tab")
            if _focus(person) == "Approve":
                break
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert person.page.evaluate(outline) == "solid"
        keyboard.press("Tab")
        assert _focus(person) == "Deny"
        keyboard.press("Shift+Tab")
        keyboard.press("Enter")
        person.page.get_by_role("heading", name="Device approved").wait_for()
        assert device.redeem()[0] == 200


def _focus(person: Visit) -> str:
    return person.page.evaluate("document.activeElement.innerText.trim()")


class TestElsewhere:
    def test_a_page_cant_be_framed(self, stack: Stack, visit: Callable[..., Visit]):
        person = visit()
        with person.page.expect_console_message(lambda message: is_refusal(message.text)):
            person.page.set_content(f'<iframe src="{stack.base_url}/"></iframe>')
        assert "Find the trackers that run before consent" not in "".join(
            frame.content() for frame in person.page.frames
        )
        person.problems.clear()

    def test_large_text_doesnt_break_the_page(self, visit: Callable[..., Visit]):
        person = signed_in(visit("phone"), "/device")
        person.arrive("Approve a device")
        person.page.evaluate("document.documentElement.style.fontSize = '200%'")
        person.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert person.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
