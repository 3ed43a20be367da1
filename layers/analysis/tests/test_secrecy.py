"""Values that are no secrets, though they look like some: public ones, placeholders, examples, and texts."""

from analysis_testing.in_process import analyze_files
from openassent_analysis import secrecy
from tests.support.each import each

# In parts, so that no scanner takes this file for one with secrets.
RANDOM = "q8ZtW3nLkP5r" + "Vx7YbD2sHfJm"
GITHUB = "ghp_" + "R3aL9kQz7VbN2mXw5TyU8oPi1JhG4fDsA6cE"
STRIPE = "sk_" + "live_4eC39HqTy8wDarjtT1zdp7dQ"


def secrets(path, code):
    found = analyze_files([(path, code.encode())]).findings
    return [finding.rule_id for finding in found if finding.category == "secrets"]


class TestValues:
    @each("value", [
        RANDOM, GITHUB, STRIPE, "d2b7c9f04e81a6535c0f7be29d14a8637ef05b1c", "k3j9vq8zl2mn5pr7tw1xy4bc6df0",
    ])  # fmt: skip
    def test_generated_values_are_random(self, value):
        assert secrecy.is_random(value)
        assert not secrecy.is_public(value)

    @each("value", [
        "rsInventoryPublicSecret2024", "enterYourClientSecretHere1", "my-app-client-secret-2023",
        "STORAGE_SECRET_KEY_NAME_2", "settings.oauth.clientSecret.label1", "projects/acme/secrets/stripe-key-1",
        "SuperSecretDevelopmentKey123",
    ])  # fmt: skip
    def test_words_are_not_random(self, value):
        assert not secrecy.is_random(value)

    @each("value", [
        "AIza" + "SyD3k9vQ8zL2mN5pR7tW1xY4bC6dF0gH", "pk_" + "live_51HqLyjWDarjtT1zdp7dc",
        "sk_" + "test_51HqLyjWDarjtT1zdp7dc",
        "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "d41d8cd98f00b204e9800998ecf8427e",
        "ac0974bec39a17e36ba4a6b4d238ff94" + "4bacb478cbed5efcae784d7bf4f2ff80",
        "phc_" + "pdmoQwXOuMwrydF7gjWZ715ePcUR5Jn",
    ])  # fmt: skip
    def test_public_and_published_values_are_public(self, value):
        assert secrecy.is_public(value)


class TestContext:
    @each(("path", "code"), [
        ("src/a.ts", f"export const example = {{ clientSecret: '{RANDOM}' }};"),
        ("src/a.ts", f"const schema = {{ properties: {{ token: {{ default: '{GITHUB}', example: '{GITHUB}' }} }} }};"),
        ("src/Form.tsx", f"export default () => <Input name='key' placeholder='{STRIPE}' />;"),
        ("src/Form.tsx", f"const helpText = 'A key such as {STRIPE}';"),
        ("src/a.js", f"// const client = {{ clientSecret: '{RANDOM}' }};\nstart();"),
        ("src/a.js", f"/* stripe('{STRIPE}') */ start();"),
        ("index.html", f"<!-- <script>stripe('{STRIPE}')</script> --><script>start()</script>"),
        ("src/locales/de.ts", f"export default {{ clientSecret: '{RANDOM}' }};"),
        ("docs/auth.js", f"const auth = {{ clientSecret: '{RANDOM}' }};"),
        ("app/auth.py", f'def login():\n    """Takes a token such as {GITHUB}."""\n    return 1\n'),
        ("app/auth.py", f"EXAMPLE_TOKEN = '{GITHUB}'\n"),
        ("app/models.py", f"token = Field(example='{GITHUB}')\n"),
    ])  # fmt: skip
    def test_a_secret_that_is_only_shown_is_not_reported(self, path, code):
        assert secrets(path, code) == []

    @each(("path", "code", "rule_id"), [
        ("src/a.ts", f"export const oauth = {{ clientSecret: '{RANDOM}' }};", "hard-coded-client-secret"),
        ("src/documents.ts", f"const auth = {{ clientSecret: '{RANDOM}' }};", "hard-coded-client-secret"),
        ("src/a.ts", f"const latest = fetch(url, {{ headers: {{ token: '{GITHUB}' }} }});", "code-host-token"),
        ("src/pay.jsx", f"export default () => <Pay secret='{STRIPE}' />;", "payment-secret-key"),
        ("app/auth.py", f"TOKEN = '{GITHUB}'\n", "code-host-token"),
    ])  # fmt: skip
    def test_a_secret_that_is_used_is_reported(self, path, code, rule_id):
        assert secrets(path, code) == [rule_id]
