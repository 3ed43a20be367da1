"""Rules for every page and form of an organization: outsiders, people of other organizations, and lesser roles."""

import re

import pytest

from controlplane.platform.core.roles import RANK
from tests.functional.dashboard.test_round_trips import FORMS_OF_ORGANIZATIONS, addresses_of
from tests.support.browser import Browser
from tests.support.populated_organization import id_part, populate_organization
from tests.support.subject import Subject
from tests.support.world import Company, uncounted


def contents(company: Company) -> list[dict]:
    """Returns what is stored of the organization."""
    return [it for it in uncounted() if id_part(company.organization_id) in str(it)]


def made_of(page: str) -> bool:
    """Returns whether the page shows one thing of the organization, which another one doesn't have."""
    return len(re.findall(r"/\w+_\w+|/projects/(?!new)", page)) > 0


def test_a_page_of_another_organization_looks_like_one_of_a_missing_organization(visitor, world):
    made = populate_organization(world)
    own = world.company(owner=world.person())
    browser = Browser(visitor.api).signed_in(own.owner.user_id)
    slug = made.company.slug
    pages = [it for it in addresses_of(made, "") if it.startswith(f"/organizations/{slug}")]
    for page in pages:
        foreign, missing, at_home = (browser.get(page.replace(slug, it)) for it in (slug, "missing", own.slug))
        if missing.status == 303:  # the address of a form, which leads to its page
            continue
        assert (foreign.status, missing.status) == (404, 404), page
        assert foreign.text.replace(slug, "") == missing.text.replace("missing", ""), page
        assert at_home.status == (404 if made_of(page) else 200), page


# Only those who came back from GitHub have the offers that this form has to contain.
FORMS = [form for form in FORMS_OF_ORGANIZATIONS if form.name != "connectRepository"]


@pytest.mark.parametrize("form", FORMS, ids=[f"{number} {form.name}" for number, form in enumerate(FORMS)])
def test_a_form_changes_nothing_for_outsiders_and_for_members_with_a_lesser_role(form, api, world):
    subject, own = Subject(world, api), world.company()
    company, posted = subject.company, form.prepared(subject)
    lesser = {role: world.member(company, role) for role in RANK if RANK[role] < RANK[form.role]}
    for who, person in {"outsider": own.owner, "outsider at home": own.owner, **lesser}.items():
        at_home = who == "outsider at home"
        sent = posted._replace(path=posted.path.replace(company.slug, own.slug)) if at_home else posted
        before = contents(company)
        status = sent.of(person)().status
        assert contents(company) == before, who
        if not at_home:
            assert status == (404 if who == "outsider" else 403), who
        elif "{" in form.operation.path.partition("}")[2]:
            assert status == 404, who
