import pytest


@pytest.fixture(autouse=True)
def own_configuration(monkeypatch, tmp_path_factory):
    """A configuration folder of the test's own, without a keyring and without the developer's environment."""
    for variable in ("ASSENT_API_KEY", "ASSENT_BASE_URL", "ASSENT_ORG", "ASSENT_PROFILE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ASSENT_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("ASSENT_KEYRING", "off")
