"""The pages of projects, keys, members, and billing, as an owner uses them."""

from collections.abc import Callable

from tests.browser.conftest import LOOKS, Stack, Visit


@LOOKS
class TestWork:
    def test_an_owner_sets_up_a_project(self, stack: Stack, visit: Callable[..., Visit], width, scheme):
        person = visit(width, scheme)
        person.open("/organizations/acme/projects")
        person.sign_in(stack.person())
        person.look("Projects", "projects")
        person.page.get_by_role("link", name="Create a project").first.click()
        person.look("Create a project", "project-new")
        name = f"Store on a {width}"
        person.page.get_by_label("Name").fill(name)
        person.page.get_by_label("Websites").fill("store.example.com\nnot a site")
        person.press("Create the project")
        person.look("Create a project", "project-new-problem")
        person.page.get_by_label("Websites").fill("store.example.com\n*.store.example.com\nlocalhost:3000")
        person.press("Create the project")
        person.look(name, "project-created")
        pages = person.page.get_by_role("navigation", name="Project", exact=True)
        pages.get_by_role("link", name="Consent").click()
        person.look(f"Consent of {name}", "project-consent")
        person.page.get_by_role("button", name="Copy").first.click()
        person.page.get_by_role("button", name="Copied").or_(person.page.get_by_text("Selected")).first.wait_for()
        pages.get_by_role("link", name="Settings").click()
        person.page.get_by_text("Remove localhost:3000", exact=True).click()
        person.look(f"Settings of {name}", "project-settings")
        person.press("Remove the website localhost:3000")
        person.page.get_by_text("The website is removed.").wait_for()
        person.page.get_by_role("link", name="Delete this project").click()
        person.look(f"Delete {name}?", "project-delete")
        person.page.get_by_label("Name of the project").fill(name)
        person.press("Delete this project")
        person.look("Projects", "project-deleted")
        person.page.get_by_role("link", name="Acme Shop").click()
        person.look("Acme Shop", "project")
        pages.get_by_role("link", name="Vendors").click()
        person.look("Vendors of Acme Shop", "project-vendors")

    def test_an_owner_manages_keys_members_and_billing(self, stack: Stack, visit: Callable[..., Visit], width, scheme):
        person = visit(width, scheme)
        person.open("/organizations/acme/keys")
        person.sign_in(stack.person())
        person.look("API keys", "keys")
        person.page.get_by_label("Name of a new key").fill("Production deploys")
        person.press("Create key")
        person.look("Copy the new key", "key-secret")
        secret = person.page.locator("#secret").text_content() or ""
        person.context.grant_permissions(["clipboard-read", "clipboard-write"])
        person.page.get_by_role("button", name="Copy").first.click()
        person.page.get_by_role("button", name="Copied").wait_for()
        assert person.page.evaluate("navigator.clipboard.readText()") == secret
        assert stack.call("/v1/projects", token=secret)[0] == 200
        person.page.get_by_role("link", name="Back to the keys").click()
        person.page.get_by_role("link", name="Production deploys").first.click()
        person.look("Production deploys", "key")
        person.press("Revoke this key")
        person.page.get_by_text("The key is revoked.").wait_for()
        assert stack.call("/v1/projects", token=secret)[0] == 401
        person.open("/organizations/acme/members")
        person.look("Members", "members")
        person.page.get_by_label("Email address").fill(f"new-{width}@example.com")
        person.press("Invite")
        person.look("Members", "members-invited")
        person.open("/organizations/acme/billing")
        person.look("Billing", "billing")
        person.open("/organizations/acme/audit-log")
        person.page.locator(".log details").first.click()
        person.look("Audit log", "audit-log")
