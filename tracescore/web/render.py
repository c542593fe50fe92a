"""The templates, and the words and formats they may use. Autoescape is on for every one of them."""

from importlib.resources import files
from typing import Any

import jinja2

from tracescore.drift import words
from tracescore.model import OUTCOMES
from tracescore.web import choice, glossary, views


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tracescore.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals.update({name.lower(): value for name, value in vars(glossary).items() if name.isupper()})
    environment.globals.update(
        wanted=words.WANTED,
        outcomes=OUTCOMES,
        evaluation_of=views.evaluation_of,
        telling=views.telling,
        is_score=views.is_score,
        bounds=views.bounds,
        instant=views.instant,
        moment=views.moment,
        moment_of_nanoseconds=views.moment_of_nanoseconds,
        narrowed=choice.narrowed,
    )
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)  # compiled now: the first visitor would hold everybody else up
    return environment


_TEMPLATES = _environment()


def page(template: str, **values: Any) -> bytes:
    """The HTML of one page as UTF-8; what cannot be written in UTF-8 becomes a question mark.

    Without `places`, `here` and `visitor` it has no navigation: who asks is not known.
    """
    frame = {"places": (), "here": None, "visitor": None}
    return _TEMPLATES.get_template(template).render(frame | values).encode(errors="replace")


def asset(name: str) -> bytes:
    """A file that is served as it is."""
    return files("tracescore.web").joinpath("templates", name).read_bytes()
