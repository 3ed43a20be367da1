import stat
from concurrent.futures import ThreadPoolExecutor

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError, PasswordDeleteError

from openassent_cli import credentials, profiles
from openassent_cli.credentials import FileStore, KeyringStore, Tokens
from openassent_cli.problems import Problem

TOKENS = Tokens("assent_at_secret", "assent_rt_secret", 1_000.0, "projects.read")


class Memory(KeyringBackend):
    """A keyring that works."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("not found")


class Locked(Memory):
    """A desktop's keyring that isn't running."""

    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringError("no session bus")


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    previous = keyring.get_keyring()
    monkeypatch.delenv("ASSENT_KEYRING")
    keyring.set_keyring(Memory())
    yield
    keyring.set_keyring(previous)


@pytest.fixture(params=[KeyringStore, FileStore])
def store(request):
    return request.param()


class TestStores:
    def test_tokens_are_kept_for_a_profile_until_they_are_forgotten(self, store):
        store.save("work", TOKENS)
        assert (store.load("work"), store.load("home")) == (TOKENS, None)
        for _ in range(2):
            store.delete("work")
            assert store.load("work") is None

    def test_only_its_user_can_read_the_file(self):
        FileStore().save("work", TOKENS)
        assert stat.S_IMODE((profiles.folder() / "credentials.json").stat().st_mode) == 0o600

    def test_concurrent_commands_dont_lose_each_others_tokens(self):
        names = [f"p{number}" for number in range(20)]
        with ThreadPoolExecutor(10) as threads:
            list(threads.map(lambda name: FileStore().save(name, TOKENS), names))
        assert [FileStore().load(name) for name in names] == [TOKENS] * 20

    def test_a_damaged_file_is_named(self):
        (profiles.folder() / "credentials.json").write_text("{")
        with pytest.raises(Problem, match=r"credentials\.json can't be read"):
            FileStore().load("work")

    def test_tokens_of_another_version_count_as_none(self):
        keyring.set_password("assent", "work", '{"token": "x"}')
        assert KeyringStore().load("work") is None

    def test_tokens_dont_show_in_a_traceback(self):
        assert "secret" not in repr(TOKENS)


class TestChoice:
    def test_a_keyring_that_answers_comes_first(self):
        assert isinstance(credentials.store(), KeyringStore)
        for unusable in (Locked(), keyring.backends.fail.Keyring()):
            keyring.set_keyring(unusable)
            assert isinstance(credentials.store(), FileStore)

    def test_the_keyring_can_be_turned_off(self, monkeypatch):
        monkeypatch.setenv("ASSENT_KEYRING", "off")
        assert isinstance(credentials.store(), FileStore)
