"""The API's own base URL."""

import pytest

from controlplane.platform.core import urls
from controlplane.platform.core.settings import load, settings
from tests.support.each import each


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch):
    bare = load({"TABLE_NAME": settings.table_name})
    monkeypatch.setattr(urls, "settings", bare)


def test_a_setting_overrides_the_stage():
    urls.read_stage({"stageVariables": {"publicBaseUrl": "https://stage.example.com/live"}})
    assert urls.public_base_url() == settings.public_base_url
    assert urls.dashboard_base_url() == settings.dashboard_base_url


def test_a_client_id_of_the_settings_overrides_the_stages(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "sign_in_client_id", "of the settings")
    urls.read_stage({"stageVariables": {"signInClientId": "of the stage"}})
    assert urls.sign_in_client_id() == "of the settings"


@pytest.mark.usefixtures("unset")
def test_without_settings_the_stage_determines_the_urls():
    urls.read_stage({"stageVariables": {"publicBaseUrl": "https://stage.example.com/live"}})
    assert urls.public_base_url() == urls.dashboard_base_url() == "https://stage.example.com/live"


@pytest.mark.usefixtures("unset")
@each("event", [None, {}, {"stageVariables": None}, {"stageVariables": {}}, {"stageVariables": {"publicBaseUrl": ""}}])
def test_a_client_cant_influence_the_urls(event):
    urls.read_stage(event)
    with pytest.raises(LookupError):
        urls.public_base_url()
