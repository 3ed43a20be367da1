import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from openassent_cli import profiles
from openassent_cli.problems import Problem
from openassent_cli.profiles import Profile
from tests.support.each import each

HERE = Profile("http://127.0.0.1:3000")


class TestProfiles:
    def test_the_first_profile_is_the_current_one_until_another_is_used_or_left(self):
        profiles.save("work", HERE)
        profiles.save("home", Profile("https://assent.example", "acme"))
        assert profiles.current() == "work"
        assert profiles.find("home") == Profile("https://assent.example", "acme")
        profiles.use("home")
        assert profiles.current() == "home"
        profiles.remove("home")
        assert profiles.current() == "work"
        with pytest.raises(Problem, match="no profile"):
            profiles.use("home")

    def test_an_organization_is_chosen_for_one_profile(self):
        profiles.save("work", HERE)
        profiles.save("home", HERE)
        profiles.choose_organization("home", "org_1")
        assert [it.organization for it in profiles.all_profiles().values()] == ["org_1", None]

    def test_concurrent_commands_dont_lose_each_others_profiles(self):
        names = [f"p{number}" for number in range(20)]
        with ThreadPoolExecutor(10) as threads:
            list(threads.map(lambda name: profiles.save(name, HERE), names))
        assert sorted(profiles.all_profiles()) == sorted(names)

    def test_only_its_user_can_read_the_folder_and_the_file(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ASSENT_CONFIG_DIR", str(tmp_path / "config"))
        profiles.save("work", HERE)
        assert stat.S_IMODE(profiles.folder().stat().st_mode) == 0o700
        assert stat.S_IMODE((profiles.folder() / "profiles.json").stat().st_mode) == 0o600

    @each("content", ["", "5", "[]", '{"profiles": {"a": {}}}', '{"profiles": []}', '{"profiles": 5}', "[" * 200_000])
    def test_a_damaged_file_is_named(self, content):
        path = profiles.folder() / "profiles.json"
        path.write_text(content)
        with pytest.raises(Problem, match=r"profiles\.json can't be read"):
            profiles.current()
        assert path.read_text() == content

    @each("name", ["", "../x", "a/b", "-x", "a\n", "x" * 65])
    def test_a_name_cant_be_a_path(self, name):
        with pytest.raises(Problem, match="isn't the name of a profile"):
            profiles.checked_name(name)

    def test_a_write_that_fails_leaves_the_file_as_it_was(self, monkeypatch):
        profiles.save("work", HERE)
        before = (profiles.folder() / "profiles.json").read_text()
        monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            profiles.save("home", HERE)
        assert (profiles.folder() / "profiles.json").read_text() == before
        assert sorted(it.name for it in profiles.folder().iterdir() if it.suffix != ".lock") == ["profiles.json"]
        assert json.loads(before)["current"] == "work"
