"""HTML document around a report, self-contained: no script, no font, no network.

The HTML renderers of reviews and rehearsals use it.
"""

from __future__ import annotations

from collections.abc import Iterable

from instar.base.escaping import html_text

_STYLE = """
:root{color-scheme:light dark;--e:#c62828;--w:#b26a00;--i:#1565c0;--line:#8884;--soft:#8881}
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem;font-family:ui-monospace,monospace}
details{border:1px solid var(--line);border-left-width:4px;border-radius:6px;margin:.4rem 0}
summary{cursor:pointer;padding:.4rem .7rem}details>div{padding:.2rem 1rem .8rem}
.error{border-left-color:var(--e)}.warning{border-left-color:var(--w)}.info{border-left-color:var(--i)}
.error>summary b{color:var(--e)}.warning>summary b{color:var(--w)}.info>summary b{color:var(--i)}
code,pre{font-family:ui-monospace,monospace;font-size:.88em}
pre{background:var(--soft);padding:.6rem .8rem;border-radius:6px;overflow-x:auto}
.dim{opacity:.7}table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid var(--line);padding:.3rem .5rem;text-align:left;vertical-align:top}
.pill{border:1px solid var(--line);border-radius:9px;padding:0 5px;font-size:.8em;margin-right:.3em}
ol li{margin:.6rem 0}
"""


def page(title: str, body: Iterable[str], style: str = "") -> str:
    """Return the page. ``body`` is HTML already; ``style`` is added to the common style."""
    content = "\n".join(body)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html_text(title)}</title><style>{_STYLE}{style}</style></head>\n"
        f"<body>\n{content}\n</body></html>\n"
    )
