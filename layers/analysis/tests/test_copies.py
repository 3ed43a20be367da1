"""Copies of published libraries, known by the comment that they begin with."""

from analysis_testing.in_process import analyze_files
from tests.support.each import each

PLAYER = "frame = document.createElement('iframe');\nframe.src = 'https://www.youtube.com/embed/' + id;\n"
LINES = "setting('a', 'b', 'c');\n" * 400


def skipped(path, banner, code=PLAYER + LINES):
    return dict(analyze_files([(path, f"{banner}\n{code}".encode())]).skipped)


class TestBanner:
    @each("path, banner", [
        ("js/photo.gallery.js", "/**\n * Photo Gallery v2.3.4\n * SEE LICENSE IN https://github.com/a/b\n */"),
        ("js/photo-gallery.js", "/*\n * jQuery PhotoGallery v1.3.3\n * Copyright (c) 2013 Someone Else\n */"),
        ("js/other.js", "/*!\n * Photo Gallery v2.3.4\n * Copyright (c) 2013 Someone Else\n */"),
    ])  # fmt: skip
    def test_a_file_named_like_its_banner_is_a_copy(self, path, banner):
        assert skipped(path, banner) == {"vendored": 1}

    @each("path, banner", [
        ("js/main.js", "/**\n * Photo Gallery v2.3.4\n * Copyright 2013 Someone Else\n */"),
        ("js/gallery.js", "/**\n * Photo Gallery v2.3.4\n * Copyright 2013 Someone Else\n */"),
        ("js/photo.gallery.js", "/**\n * Photo Gallery of our shop.\n * Copyright 2013 Someone Else\n */"),
        ("js/photo.gallery.js", "/**\n * Photo Gallery v2.3.4 is what this replaces.\n */"),
    ])  # fmt: skip
    def test_other_banners_dont_make_a_copy(self, path, banner):
        assert skipped(path, banner) == {}

    def test_a_short_file_is_not_a_copy(self):
        banner = "/**\n * Photo Gallery v2.3.4\n * Copyright 2013 Someone Else\n */"
        assert skipped("js/photo.gallery.js", banner, PLAYER) == {}
