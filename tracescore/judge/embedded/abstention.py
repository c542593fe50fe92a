"""Answers that evade: "I don't know", refusals, "the documents do not say".

An answer that hedges and then answers is an answer; so is a short one with nothing but a fact.
"""

from __future__ import annotations

import re

from tracescore.judge.embedded.sentences import sentences

_PHRASES = re.compile(
    r"""(?ix)
    # English
      \bI(?:['’]m|\ am)?\ (?:(?:really|honestly|truly|currently|just|simply)\ )?(?:do\ not|don['’]?t|did\ not|didn['’]t)\ (?:actually\ |currently\ )?
        (?:know|have\ (?:enough|any|that|the|this|access|information|sufficient|specific|details)|see\ any|find|recall|understand\ (?:the|your)\ question)
    | \bI(?:\ am|['’]m)\ (?:(?:so|very|really|truly|terribly)\ )?(?:sorry|afraid|unable|not\ (?:sure|certain|able|aware|familiar|allowed|permitted|in\ a\ position|qualified|authori[sz]ed))
    | \b(?:I|we)\ (?:cannot|can['’]?t|can\ not|could\ not|couldn['’]t|won['’]t|will\ not|am\ not\ able\ to|are\ (?:unable|not\ able)\ to|have\ no|must\ decline|do\ not\ have|don['’]t\ have)\ ?
        (?:(?:really|currently|unfortunately|directly)\ )?(?:to\ )?(?:answer|help|assist|provide|find|tell|say|share|disclose|discuss|comply|determine|confirm|give|advise|fulfil|access|locate|comment|idea|information|knowledge|record|data|access|details|offer|speculate|do\ that|with\ that|enough|that)
    | \b(?:no|not\ enough|insufficient|there['’]s\ no|there\ is\ no(?:t\ enough)?)\ (?:relevant\ |further\ |specific\ |such\ )?(?:information|data|details|context|mention|answer)\b[^.]{0,40}(?:available|provided|found|given|about|on|in|regarding|to\ answer|$)
    | \b(?:the|this|these|those|my|our)\ (?:(?:provided|given|available|retrieved|supplied|above|following|current|search)\ )?
        (?:context|documents?|passages?|sources?|articles?|texts?|information|knowledge\ base|materials?|documentation|results?)\b[^.]{0,40}\b(?:do(?:es)?\ not|doesn['’]t|don['’]t|did\ not|fails?\ to)\ (?:explicitly\ |directly\ |specifically\ )?(?:contain|mention|say|include|provide|specify|state|cover|address|discuss|indicate|answer|have|give)
    | \b(?:is|are|was|were)\ not\ (?:explicitly\ |specifically\ )?(?:mentioned|specified|stated|provided|given|available|addressed|covered|discussed|described|included)\ (?:anywhere\ )?in\ (?:the|this|these|my|our|any)\b
    | \bnot\ something\ (?:that\ )?(?:I|we)\ (?:can|am|are)\b
    | \bit(?:\ is|['’]s)\ (?:not\ (?:clear|known|possible\ to\ (?:say|tell|answer|determine))|unclear|unknown|hard\ to\ (?:say|tell))\b
    | \b(?:beyond|outside)\ (?:the\ scope|my\ (?:knowledge|scope|expertise))\b
    | \bas\ an?\ (?:AI|artificial\ intelligence|large\ language|language\ model)\b
    | ^(?:no\ idea|not\ sure|unsure|unknown|n/a|no\ answer|i\ can['’]?not|i\ can['’]t|no\ comment)[.!]?$
    | \b(?:who\ knows|your\ guess\ is\ as\ good\ as\ mine|against\ (?:my|our)\ (?:policy|guidelines))\b
    | \b(?:please\ )?(?:contact|ask|consult|reach\ out\ to|refer\ to|check\ with)\b[^.]{0,60}\b(?:instead|for\ (?:more|further|this|that)\ (?:information|details|help|assistance))\b
    # German
    | \bich\ (?:weiß|weiss)\ (?:es|das|dies)?\ ?(?:leider\ )?nicht\b | \bdas\ weiß\ ich\ (?:leider\ )?nicht\b
    | \b(?:kann|können|darf|konnte)\ (?:ich|wir|dir|ihnen|diese|dazu|das|dies|darauf|leider|keine|\s)+\b[^.]*\b(?:nicht|keine)\b
    | \bich\ (?:kann|darf|konnte)\ [^.]{0,60}\b(?:nicht|keine)\b | \bkeine\ (?:informationen|angaben|auskunft|antwort|ahnung)\b
    | \bes\ tut\ mir\ leid\b | \bmir\ liegen\ keine\b
    # French, Spanish, Italian, Portuguese
    | \bje\ ne\ (?:sais\ pas|peux\ pas|dispose\ pas|suis\ pas\ (?:en\ mesure|sûr|certain))\b | \bje\ suis\ désolé | \bje\ n['’]ai\ (?:pas|aucune)\b | \baucune\ information\b
    | \bno\ (?:lo\ )?s[eé]\b(?=[.,!]|\ (?:la|eso|cu|si|qu|lo)|$) | \blo\ siento\b | \bno\ (?:puedo|tengo|dispongo|encuentro)\b[^.]{0,40}(?:informaci|respond|ayudar|proporcionar|esa|datos|respuesta)
    | \bnon\ (?:lo\ )?so\b | \bmi\ dispiace\b | \bnon\ (?:posso|ho)\b[^.]{0,40}(?:informazion|rispond|aiutar)
    | \bnão\ (?:sei|posso|tenho)\b(?=[.,!]|[^.]{0,40}(?:informa|respond|ajudar)|$) | \b(?:desculpe|lamento)\b
    # Chinese, Japanese, Korean
    | 我?不知道 | 无法(?:回答|提供|确定|协助|帮助|确认) | 抱歉 | 对不起 | 没有(?:相关|足够|任何)?(?:的)?(?:信息|资料|内容) | 不清楚 | 不能(?:回答|提供|协助) | 未(?:提及|提到|说明)
    | わかりません | 分かりません | 存じません | お答え(?:できません|することはできません|いたしかねます) | 申し訳(?:ありません|ございません) | 情報(?:が|は)(?:ありません|見つかりません|含まれていません) | できません(?:が|。|$)(?=.*(?:申し訳|ごめん))
    | 모르겠습니다 | 죄송합니다 | 알\ 수\ 없습니다 | 답변할\ 수\ 없습니다
    # Arabic, Hindi, Russian
    | لا\ (?:أعرف|أعلم|أدري|أستطيع|يمكنني) | (?:عذرًا|عذرا|آسف|أعتذر|للأسف) | لا\ (?:توجد|تتوفر|أملك)\ (?:لدي\ )?معلومات
    | (?:मुझे|मैं)\ (?:नहीं\ (?:पता|मालूम|जानता|जानती)|[^।]{0,20}(?:पता|मालूम)\ नहीं) | (?:माफ़|माफ|क्षमा)\ (?:करें|कीजिए|कीजिये) | नहीं\ (?:बता|दे)\ सकत | जानकारी\ (?:उपलब्ध\ )?नहीं | खेद\ है
    | \bя\ не\ (?:знаю|могу|уверен) | \bизвините\b | \bк\ сожалению\b | \bнет\ информации\b
    """
)
_APOLOGY = re.compile(
    r"(?i)^(?:(?:I['’]?m|I am|we['’]?re|we are) (?:(?:so|very|really|terribly) )?(?:sorry|afraid)\b(?! (?:but )?(?:I|we) (?:can|do|am|are|have|could|was))"
    r"|es tut mir leid|lo siento|je suis désolé|抱歉|对不起|죄송합니다|извините|к сожалению|عذرًا|عذرا|آسف|أعتذر|للأسف|"
    r"मुझे खेद है|माफ़ करें|माफ करें|क्षमा करें|申し訳(?:ありません|ございません))"
)
_OFFER = re.compile(
    r"(?i)\b(?:please|let me know|feel free|contact|consult|try|check|reach out|refer|could you|can you|would you|"
    r"anything else|happy to|more (?:context|information|details)|rephrase|clarify|recommend|suggest|"
    r"bitte|wenden|veuillez|contactez|por favor|consulte|请|お問い合わせ|ください|يرجى|कृपया|пожалуйста)"
)


def abstention(answer: str) -> str:
    """The words with which `answer` evades, or an empty string when it answers something.

    It evades when a sentence says so and no other sentence says more than where else to ask.
    """
    words = ""
    for sentence in sentences(answer):
        if found := _PHRASES.search(sentence):
            words = words or found[0].strip()
            if rest := _after_but(sentence, found.end()):
                if not _PHRASES.search(rest) and not _OFFER.search(rest):
                    return ""
        elif not (_APOLOGY.match(sentence) or _OFFER.search(sentence) or sentence.rstrip().endswith(("?", "？", "؟"))):
            return ""
    return words


def abstains(sentence: str) -> bool:
    """Whether this one sentence says that something is not known or not told."""
    return bool(_PHRASES.search(sentence))


_BUT = re.compile(r"(?i)(?:[,;:–—-]|\.\s)\s*(?:but|however|although|though|aber|jedoch|mais|pero|ma|但是?|不过|ですが|لكن|लेकिन|но)\s+(?P<rest>.+)$|[:：]\s+(?P<list>.+)$")


def _after_but(sentence: str, start: int) -> str:
    """What follows a `but` behind position `start`: I'm not sure, but I think it is 30 days."""
    m = _BUT.search(sentence, start)
    return (m["rest"] or m["list"]) if m else ""
