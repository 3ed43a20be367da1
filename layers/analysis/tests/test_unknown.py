"""Each line of resources/hosts.yaml that says which hosts serve no tracker."""

import re

from openassent_analysis.catalogue import catalogue
from openassent_analysis.reading import resource
from openassent_analysis.unknown import is_known_tag, unknown_host
from tests.support.each import each

HOSTS = resource("hosts")
# Examples of the lines that are expressions.
PAYMENTS = {r"[\w-]*pay": "acme-pay", r"pay[\w-]*": "paywidgets", r"braintree(?:gateway)?": "braintree"}
TAGS = {
    "Umami": ("8f2b1a34-9c0d-4e5f-8a6b-7c8d9e0f1a2b", "https://a.widget-maker.io/u.js"),
    "Plausible": ("acme.io", "https://a.widget-maker.io/js/plausible.js"),
    "GoatCounter": ("https://a.widget-maker.io/count", "https://a.widget-maker.io/count.js"),
}


@each("name", HOSTS["payments"].splitlines())
def test_a_payment_provider_is_no_unknown_third_party(name):
    name = PAYMENTS.get(name, name)
    address = f"https://js.{name}.com/v1/sdk.js"
    assert catalogue().knows(f"js.{name}.com") or unknown_host(catalogue(), address) is None
    assert unknown_host(catalogue(), f"https://js.x{name}x.com/v1/sdk.js") == f"js.x{name}x.com"


@each("name", HOSTS["libraries"].splitlines())
def test_a_well_known_library_is_no_unknown_third_party(name):
    name = re.sub(r"\?|\\", "", name)
    assert unknown_host(catalogue(), f"https://files.widget-maker.io/js/{name}.min.js") is None
    assert unknown_host(catalogue(), f"https://files.widget-maker.io/js/acme{name}.js") is not None


@each("tool", HOSTS["self_hosted"])
def test_a_tag_of_analytics_without_identifiers_is_known_on_any_host(tool):
    value, address = TAGS[tool["tool"]]
    attribute = tool["attribute"]
    assert is_known_tag(f'<script {attribute}="{value}" src="{address}">', address)
    assert is_known_tag(f'<script {attribute}={{process.env.ID}} src="{address}">', address)
    assert not is_known_tag(f'<script {attribute.removeprefix("data-")}="{value}" src="{address}">', address)
