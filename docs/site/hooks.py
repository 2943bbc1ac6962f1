"""What MkDocs does not know of these pages: their order, which docs/README.md has, and files outside docs/."""

import os
import posixpath
import re

LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)\s]+)\)")
ROW = re.compile(r"^\| (?:\*\*(?P<section>[^*]+)\*\*|(?P<task>[^|]+)) \|(?P<pages>[^|]*)\|$", re.M)


def on_config(config):
    """Make the navigation of the table in docs/README.md: a section for each line in bold."""
    with open(os.path.join(config.docs_dir, "README.md"), encoding="utf-8") as page:
        table = page.read()

    config.nav = ["README.md", "tutorial.md"]
    pages, seen = config.nav, {"README.md", "tutorial.md"}
    for row in ROW.finditer(table):
        if row["section"]:
            pages = []
            config.nav.append({row["section"][0].upper() + row["section"][1:]: pages})
        for name in re.findall(r"\(([a-z-]+(?:/README)?\.md)\)", row["pages"]):
            if name not in seen:
                seen.add(name)
                pages.append(name)
    return config


def on_page_markdown(markdown, page, config, files):
    """Name files outside docs/, which the site does not have, without a link."""

    def outside(link):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link[2].split("#")[0]))
        return f"{link[1]} (`{path[3:]}`)" if path.startswith("../") else link[0]

    return LINK.sub(outside, markdown)
