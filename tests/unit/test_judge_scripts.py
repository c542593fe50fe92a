"""Whether a reply is a translation: what letters decide, and what does not."""

from __future__ import annotations

import pytest

from tracescore.judge.replies import read_claims
from tracescore.judge.scripts import is_translated


@pytest.mark.parametrize(
    ("texts", "source", "translated"),
    [
        (["What is the refund period?"], "\u9000\u8d27\u671f\u9650\u4e3a30\u5929\u3002", True),
        (["\u9000\u8d27\u671f\u9650\u662f\u591a\u5c11\uff1f"], "\u9000\u8d27\u671f\u9650\u4e3a30\u5929\u3002", False),
        (["\u3044\u3064\u3067\u3059\u304b"], "\u4eca\u65e5\u306f\u6674\u308c", False),
        (["How long?"], "\u041c\u043e\u0436\u043d\u043e 30 \u0434\u043d\u0435\u0439.", True),
        (["\u5982\u4f55\u8fd0\u884c kubectl\uff1f"], "\u8fd0\u884c kubectl apply \u5373\u53ef", False),
        (["Wie lange?"], "30 Tage", False),
        (["How many?"], "42", False),
        ([], "\u4eca\u65e5", False),
        (["\u4f7f\u7528\u3059\u308b\u306e\u306f PostgreSQL 16 \u3067\u3059"], "PostgreSQL 16", False),
        (["\u9ed8\u8ba4\u503c\u662f max_wal_size"], "max_wal_size = 1GB", False),
        (["\u8fd0\u884c\u547d\u4ee4"], "`kubectl apply -f`", False),
        (["PostgreSQL 16", "`pg_dump --clean`", "https://x.test/a"], "\u4f7f\u7528\u3057\u307e\u3059", False),
        (["kubectl?"], "\u8fd0\u884c kubectl \u5373\u53ef", False),
        (["The default version is used"], "\u4f7f\u7528 PostgreSQL 16", True),
        (["\u9ed8\u8ba4\u503c\u662f PostgreSQL 16"], "The default is PostgreSQL 16.", True),
        (["\u041a\u0430\u043a\u043e\u0439?"], "\u03a0\u03bf\u03b9\u03bf \u03b5\u03af\u03bd\u03b1\u03b9;", True),
    ],
)
def test_a_reply_in_another_script_is_a_translation_but_not_for_names_code_and_numbers(
    texts, source, translated
) -> None:
    assert is_translated(texts, source) is translated


def test_claims_may_be_in_the_script_of_the_question_that_a_short_answer_is_read_with() -> None:
    claims = {"claims": [{"from": "t1", "text": "\u4f7f\u7528\u547d\u4ee4\u662f kubectl apply"}]}
    found = read_claims(claims, {"t1": "kubectl apply"}, "\u4f7f\u7528\u54ea\u4e2a\u547d\u4ee4\uff1f")
    assert found.texts == ("\u4f7f\u7528\u547d\u4ee4\u662f kubectl apply",)
