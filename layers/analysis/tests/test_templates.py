"""Templates become HTML, and every place in it is a place in the file."""

from analysis_testing.in_process import analyze_files
from openassent_analysis.engine import source_of
from openassent_analysis.files import language_of
from openassent_analysis.inventory.listing import Listing
from openassent_analysis.kinds import with_not_assessed
from openassent_analysis.templates.dialects import DIALECTS
from openassent_analysis.templates.reading import read_template
from tests.support.each import each

SCRIPT = '<script src="https://static.hotjar.com/c/hotjar-1.js"></script>'


def location(path, text):
    (place,) = [it.location for it in analyze_files([(path, text.encode())]).findings if it.category == "trackers"]
    return place.start_line, place.start_column, place.snippet


# By file: its text, and the line, the column, and the snippet of the finding.
STATEMENT, ADDS = (
    "s.src = 'https://static.hotjar.com/c/hotjar-1.js';",
    '{{ template "_internal/google_analytics.html" . }}',
)
PLACES = [
    ("a.twig", f"{{% if a %}}{{{{ b }}}}\n  {SCRIPT}", (2, 3, SCRIPT)),
    *(
        (path, f"head\n\n  {line}\n  title Hello\n", (3, 3, line))
        for path, line in (
            ("a.pug", "script(async src='https://static.hotjar.com/c/hotjar-1.js')"),
            ("a.haml", '%script{:async => true, :src => "https://static.hotjar.com/c/hotjar-1.js"}'),
            ("a.slim", 'script async=true src="https://static.hotjar.com/c/hotjar-1.js"'),
        )
    ),
    ("a.pug", f"head\n  script.\n    var s = f('script');\n    {STATEMENT}\n", (4, 5, STATEMENT)),
    ("layouts/a.html", f"<head>\n  {ADDS}\n</head>", (2, 3, ADDS)),
]


class TestPlaces:
    @each(("path", "text", "place"), PLACES)
    def test_a_finding_shows_the_file_and_not_what_it_was_turned_into(self, path, text, place):
        assert location(path, text) == place

    @each("extension", sorted(DIALECTS))
    def test_a_file_without_a_template_is_taken_as_it_is(self, extension):
        if DIALECTS[extension].indented or DIALECTS[extension].in_strings:
            return
        page = f"<html>\n<head>{SCRIPT}<script>var a = [1];</script></head>\n<p>Text</p></html>\n"
        assert read_template(f"a.{extension}", page).code == page


class TestIncludes:
    @each(("path", "text", "name"), [
        ("a.html", "{% include 'analytics.html' %}", "analytics.html"),
        ("a.html", "{% include analytics.html id=1 %}", "analytics.html"),
        ("a.liquid", "{% render 'ga' %}", "ga"),
        ("a.html.erb", "<%= render 'layouts/ga' %>", "layouts/ga"),
        ("a.html.erb", '<%= render partial: "layouts/ga" %>', "layouts/ga"),
        ("a.ejs", "<%- include('partials/ga') %>", "partials/ga"),
        ("a.blade.php", "@include('partials.analytics')", "partials.analytics"),
        ("a.html", '{{ partial "ga.html" . }}', "ga.html"),
        ("a.tmpl", '{{ template "ga" . }}', "ga"),
        ("a.hbs", "{{> ga}}", "ga"),
        ("a.pug", "head\n  include ga", "ga"),
        ("a.haml", "%head\n  = render 'ga'", "ga"),
        ("a.ftl", '<#include "ga.ftl">', "ga.ftl"),
        ("a.jsp", '<jsp:include page="ga.jsp"/>', "ga.jsp"),
        ("a.cshtml", '@await Html.PartialAsync("_Ga")', "_Ga"),
        ("a.cshtml", '<partial name="_Ga" />', "_Ga"),
        ("a.php", "<?php include 'ga.php'; ?>", "ga.php"),
        ("a.php", "<?php get_template_part('ga'); ?>", "ga"),
        ("a.tpl", '{include file="ga.tpl"}', "ga.tpl"),
    ])  # fmt: skip
    def test_names_what_a_template_contains_and_where(self, path, text, name):
        source = source_of(path, "\n\n" + text, "html")
        assert [it.name for it in source.includes] == [name]
        assert source.position(source.includes[0].offset)[0] == 2 + len(text.split("\n"))

    def test_an_include_has_the_conditions_around_it(self):
        text = "{% if a %}{% include 'x' %}{% else %}{% include 'y' %}{% endif %}"
        source = source_of("a.html", text, "html")
        assert [source.template_conditions(it.offset) for it in source.includes] == [[("a", True)], [("a", False)]]


class TestConditions:
    @each(("path", "text", "expected"), [
        ("a.twig", "{% if a %}{% elseif b %}{% else %}X{% endif %}", [("a", False), ("b", False)]),
        ("a.liquid", "{% unless a %}X{% endunless %}", [("a", False)]),
        ("a.liquid", "{% unless a %}{% else %}X{% endunless %}", [("a", True)]),
        ("a.erb", "<% if a %><% items.each do |i| %><% end %>X<% end %>", [("a", True)]),
        ("a.erb", "<% if a %><% items.each do |i| %><% end %><% end %>X", []),
        ("a.php", "<?php if ($a): ?><?php foreach ($b as $c): ?><?php endforeach; ?>X<?php endif ?>", [("$a", True)]),
        ("a.php", "<?php if ($a) { if ($b) { f(); } ?>X<?php } ?>", [("$a", True)]),
        ("a.php", "<?php if ($a) return; ?>X", [("$a", False)]),
        ("a.ejs", "<% if (f({a: 1})) { %>X<% } %>", [("f({a: 1})", True)]),
        ("a.hbs", "{{#unless a}}{{#each b}}{{else}}{{/each}}X{{/unless}}", [("a", False)]),
        ("a.tmpl", "{{if .A}}{{range .B}}{{else}}{{end}}{{else if .C}}X{{end}}", [(".A", False), (".C", True)]),
        ("a.jsp", "<c:choose><c:when test='${a}'></c:when><c:otherwise>X</c:otherwise></c:choose>", [("${a}", False)]),
        ("a.vue", "<p v-if='a'></p><b v-else-if='b'></b><i v-else>X</i>", [("b", False), ("a", False)]),
        ("a.cshtml", "@if (a) { <p>{ }</p> } else if (b) { X }", [("a", False), ("b", True)]),
    ])  # fmt: skip
    def test_names_the_conditions_and_whether_they_hold(self, path, text, expected):
        template = read_template(path, SCRIPT + text)
        assert template.tests_at(len(SCRIPT) + text.index("X")) == expected


class TestKinds:
    def test_counts_what_was_analyzed_and_what_was_not(self):
        page = SCRIPT.encode()
        files = [
            ("a.js", b"f();"), ("b.ts", b"f();"), ("c.js", b"f();" * 9_000), ("app/a.html.erb", page), ("a.rb", b"x"),
            ("README.md", b"x"), ("a.css", b"x"), ("node_modules/a.js", b"x"), ("spec/a.rb", b"x"), ("a.py", b""),
            ("package.json", b"{}"), ("a.yml.erb", b"x"), ("a.html", b"\0"),
        ]  # fmt: skip
        kinds = analyze_files(files).kinds
        assert {name: (kind.analyzed, kind.not_assessed) for name, kind in kinds.items()} == {
            "JavaScript and TypeScript": (2, 1), "ERB": (1, 0), "Ruby": (0, 1), "Markdown and MDX": (0, 1),
            "package manifests": (1, 0), "HTML": (0, 1),
        }  # fmt: skip

    def test_files_that_are_never_unpacked_count_too(self):
        listing = Listing()
        for path in ("a.swift", "b.swift", "a.js", "README.md", "logo.png", "vendor/c.swift"):
            listing.take(path, 1)
        kinds = with_not_assessed(analyze_files([("a.js", b"f();")]).kinds, listing.not_assessed)
        assert {name: (kind.analyzed, kind.not_assessed) for name, kind in kinds.items()} == {
            "JavaScript and TypeScript": (1, 0), "Markdown and MDX": (0, 1), "Swift": (0, 2),
        }  # fmt: skip


@each(("name", "language"), [
    ("a.html.erb", "html"), ("a.js.erb", "javascript"), ("a.css.erb", None), ("deploy.yaml.tmpl", None),
    ("page.tmpl", "html"), ("README.md.ejs", None), ("a.blade.php", "html"), ("erb", None), ("a.md", None),
])  # fmt: skip
def test_a_template_is_read_as_what_it_writes(name, language):
    assert language_of(name) == language
