"""Rows of the list of projects, byte for byte as their model serializes to, and slugs."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from controlplane.organizations.store import Membership
from controlplane.platform.core.ids import InstanceId, ProjectId
from controlplane.projects.items import ConsentItem, ProjectItem, WebsiteItem
from controlplane.projects.store import slug_of
from projects.schemas import ListedConsent, ListedProject
from tests.support.each import each

ORGANIZATION, LOCAL = "org_3f8k2m9q7r1s5t6v", "01kb2m3n4p5q6r7s8t"
MEMBERSHIP = Membership(organization_id=ORGANIZATION, slug="acme", name="Acme", role="member")
PROJECT = ProjectItem(
    project_id=ProjectId.of(ORGANIZATION, LOCAL),
    name='Shop "für" \u2028 🛒',
    slug="shop",
    description=None,
    region="eu-central",
    created_at="2026-03-04T05:06:07.000Z",
    version="0",
    websites=(
        WebsiteItem(website_id="web_1", origin="example.com", kind="domain"),
        WebsiteItem(website_id="web_2", origin="example.org", kind="domain", trusted=False),
    ),
    consent=ConsentItem(instance_id=InstanceId.of(ORGANIZATION, LOCAL), slug="shop", name="Shop", branding="none"),
)


def test_a_row_equals_the_serialized_model():
    for project in (
        PROJECT,
        replace(PROJECT, description="<b>\u00e9</b>", websites=()),
        replace(PROJECT, consent=None),
    ):
        row, model = ListedProject.row(MEMBERSHIP, project), ListedProject.of(MEMBERSHIP, project)
        assert to_json(row) == to_json(model, by_alias=True) == model.model_dump_json(by_alias=True).encode()
        if consent := project.consent:
            shown = ListedConsent.of(MEMBERSHIP, project, consent)
            assert to_json(row["products"]["consent"]) == to_json(shown, by_alias=True)


@given(st.text(max_size=200))
def test_any_name_gives_a_slug_that_fits_a_url(name):
    slug = slug_of(name)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
    assert len(slug) <= 48
    assert slug_of(slug) == slug


@each(
    ("name", "slug"),
    [
        ("Ünser Läden & Co.", "unser-laden-co"),
        ("--a--", "a"),
        (" spaced ", "spaced"),
        ("x" * 100, "x" * 48),
        ("x" * 47 + " y", "x" * 47),
        *((name, "project") for name in ("", "   ", "日本語", "🛒🛒", "---", "\u0301")),
    ],
)
def test_a_slug_has_the_latin_letters_and_digits_of_the_name(name, slug):
    assert slug_of(name) == slug
