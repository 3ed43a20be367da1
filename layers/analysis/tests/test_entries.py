"""Each line of resources/paths.yaml that says which files run by themselves, with a near path that doesn't."""

import re

from openassent_analysis.entries import Runs, runs
from openassent_analysis.reading import resource
from tests.support.each import each

PATHS = resource("paths")
# For each line: a path that it is about, and a near one that it isn't about.
EXAMPLES = {
    "by_convention": [
        ("src/theme/Footer/index.tsx", "src/themes/Footer/index.tsx"),
        ("docs/.vitepress/theme/Tags.vue", "docs/.vitepress/lib/Tags.vue"),
        ("docs/.vuepress/components/Tags.vue", "docs/.vuepress/lib/Tags.vue"),
        ("app/javascript/controllers/tags_controller.js", "app/javascript/controllers/tags.js"),
        ("app/instance-initializers/tags.js", "app/lib/tags.js"),
        ("src/hooks.server.ts", "src/lib/hooks.service.ts"),
        ("src/html.js", "src/html5.js"),
        ("src/templates/post.jsx", "src/lib/post.jsx"),
        ("resources/js/Pages/Home.vue", "resources/js/Shared/Home.vue"),
        ("src/app/app.module.ts", "src/app/tags.module.ts"),
        ("overrides/partials/head.html", "other/partials/head.html"),
    ],
    "hooks": [
        ("layouts/partials/hooks/head-end.html", "layouts/partials/tags/tracking.html"),
        ("layouts/partials/extend_head.html", "layouts/partials/extended.html"),
        ("layouts/_partials/head/custom.html", "layouts/_partials/tags/custom.html"),
        ("_includes/head_custom.html", "_includes/head_tags.html"),
        ("_includes/footer/custom.html", "_includes/tags/custom.html"),
        ("_includes/metadata-hook.html", "_includes/google-analytics.html"),
    ],
    "messages": [
        ("templates/emails/welcome.html", "templates/pages/welcome.html"),
        ("app/views/user_mailer/welcome.html.erb", "app/views/users/welcome.html.erb"),
        ("app/views/layouts/mailer.html.erb", "app/views/layouts/site.html.erb"),
    ],
}
LINES = [
    (name, line, *paths)
    for name, examples in EXAMPLES.items()
    for line, paths in zip(PATHS[name].splitlines(), examples, strict=True)
]
RUNS = {"by_convention": Runs.ALL, "hooks": Runs.PERHAPS, "messages": Runs.NEVER}


@each(("name", "line", "path", "near"), LINES)
def test_a_path_says_whether_a_file_runs(name, line, path, near):
    assert re.search(line, path)
    assert runs(path) is RUNS[name]
    assert runs(near) is not RUNS[name]
