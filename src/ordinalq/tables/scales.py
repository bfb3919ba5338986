"""Order of common scales of words, in several languages.

The scales are agreement, satisfaction, frequency, quality, sizes and months.
"""

import unicodedata
from collections.abc import Iterable

# Scales separated by empty lines, levels in ascending order by commas, forms of a level, in several languages, by "|".
_SCALES = """
strongly disagree|totally disagree|stimme gar nicht zu|stimme überhaupt nicht zu|pas du tout d'accord|
totalmente en desacuerdo|muy en desacuerdo, disagree|stimme nicht zu|pas d'accord|en desacuerdo,
somewhat disagree|slightly disagree|stimme eher nicht zu|plutôt pas d'accord|algo en desacuerdo, neutral|
neither|undecided|unsure|neither agree nor disagree|teils teils|weder noch|neutre|
ni d'accord ni pas d'accord|ni de acuerdo ni en desacuerdo, somewhat agree|slightly agree|stimme eher zu|
plutôt d'accord|algo de acuerdo, agree|stimme zu|d'accord|de acuerdo, strongly agree|totally agree|
stimme voll zu|stimme voll und ganz zu|tout à fait d'accord|totalmente de acuerdo|muy de acuerdo

extremely dissatisfied|completely dissatisfied, very dissatisfied|very unsatisfied|sehr unzufrieden|
très insatisfait|muy insatisfecho, dissatisfied|unsatisfied|unzufrieden|insatisfait|insatisfecho,
somewhat dissatisfied|eher unzufrieden|plutôt insatisfait|algo insatisfecho, neutral|neither|
neither satisfied nor dissatisfied|teils teils|weder noch|neutre, somewhat satisfied|eher zufrieden|
plutôt satisfait|algo satisfecho, satisfied|zufrieden|satisfait|satisfecho, very satisfied|sehr zufrieden|
très satisfait|muy satisfecho, extremely satisfied|completely satisfied

very unhappy|sehr unglücklich, unhappy|unglücklich, somewhat unhappy, neutral|neither, somewhat happy, happy|
glücklich, very happy|sehr glücklich

very negative|highly negative|sehr negativ, negative|negativ|négatif|negativo, somewhat negative, neutral|
neutre|mixed, somewhat positive, positive|positiv|positif|positivo, very positive|highly positive|sehr positiv

very unlikely|extremely unlikely, unlikely|unwahrscheinlich, somewhat unlikely, neutral|neither,
somewhat likely, likely|wahrscheinlich, very likely|extremely likely|sehr wahrscheinlich

never|nie|jamais|nunca, almost never|hardly ever|fast nie|casi nunca, rarely|seldom|selten|rarement|rara vez,
occasionally|gelegentlich, sometimes|manchmal|parfois|a veces, often|frequently|oft|häufig|souvent|a menudo,
usually|very often|sehr oft|meistens|casi siempre|almost always|fast immer, always|immer|toujours|siempre

terrible|awful|horrible, very poor|very bad|sehr schlecht|très mauvais|muy malo, poor|bad|schlecht|mangelhaft|
mauvais|malo, fair|average|mittel|ok|okay|passable|regular|ausreichend|befriedigend, good|gut|bon|bueno,
very good|sehr gut|très bon|muy bueno, excellent|superb|hervorragend|ausgezeichnet|excelente, outstanding

none|no|not at all|gar nicht|pas du tout|nada, minimal|slightly|a little|wenig|un peu|poco, low|mild|niedrig|
leicht|faible|bajo, medium|moderate|moderately|mittel|moyen|medio, high|severe|very|hoch|stark|élevé|alto,
very high|very severe|extreme|extremely|sehr hoch|très élevé|muy alto, critical

very low|sehr niedrig|très faible|muy bajo, low|niedrig|faible|bajo, medium|moderate|mittel|moyen|medio, high|
hoch|élevé|alto, very high|sehr hoch|très élevé|muy alto

xxxs, xxs|2xs, xs|extra small, s|small, m|medium, l|large, xl|extra large, xxl|2xl, xxxl|3xl, 4xl|xxxxl

tiny|winzig, small|klein|petit|pequeño, medium|mittel|moyen|mediano, large|big|groß|grand|grande, huge|riesig

january|jan|januar|janvier|enero, february|feb|februar|février|febrero, march|mar|märz|mars|marzo, april|apr|
avril|abril, may|mai|mayo, june|jun|juni|juin|junio, july|jul|juli|juillet|julio, august|aug|août|agosto,
september|sep|sept|septembre|septiembre, october|oct|oktober|okt|octobre|octubre, november|nov|novembre|
noviembre, december|dec|dezember|dez|décembre|diciembre

monday|mon|montag|lundi|lunes, tuesday|tue|dienstag|mardi|martes, wednesday|wed|mittwoch|mercredi|miércoles,
thursday|thu|donnerstag|jeudi|jueves, friday|fri|freitag|vendredi|viernes, saturday|sat|samstag|samedi|sábado,
sunday|sun|sonntag|dimanche|domingo
"""


def _key(word: str) -> str:
    """Return a word without case, accents, blanks and marks.

    >>> _key("Very Unhappy"), _key("très-élevé")
    ('veryunhappy', 'treseleve')
    """
    plain = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in plain if letter.isalnum())


SCALES = [
    {_key(form): level for level, forms in enumerate(scale.split(",")) for form in forms.split("|")}
    for scale in _SCALES.strip().split("\n\n")
]


def known_order(words: Iterable[str]) -> list[str] | None:
    """Return words in the ascending order of their common scale, or None.

    The result is None if they are not from one scale.

    >>> known_order(["Happy", "Neutral", "VeryUnhappy", "VeryHappy", "Unhappy"])
    ['VeryUnhappy', 'Unhappy', 'Neutral', 'Happy', 'VeryHappy']
    >>> known_order(["L", "S", "XL", "M"]), known_order(["red", "blue"])
    (['S', 'M', 'L', 'XL'], None)
    """
    words = list(words)
    for scale in SCALES:
        levels = [scale.get(_key(word)) for word in words]
        if None not in levels and len(set(levels)) == len(words) > 1:
            return [word for _, word in sorted(zip(levels, words, strict=True), key=lambda pair: pair[0] or 0)]
    return None
