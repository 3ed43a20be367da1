"""The names by which consent is asked for and stored: of libraries, of keys in storage, and of values.

A name is evidence only where it is used: a key in an access to storage, a library's object in code, a value that no
code of the file defines.
"""

from __future__ import annotations

import re
from typing import Final

from openassent_analysis.libraries import libraries

# Objects, functions, and components of consent libraries, as a file writes them.
_LIBRARY: Final = (
    r"Cookiebot|CookieConsent(?:API)?(?=\s*[.(])|cookieconsent(?=\s*\.)|cookieconsent_options|cookieControl|CookieControl|OneTrust"
    r"|OnetrustActiveGroups|OptanonActiveGroups|Optanon"
    r"|OptanonWrapper|UC_UI|usercentrics|__ucCmp|Didomi|didomiOnReady|didomiEventListeners|didomiState"
    r"|klaro(?:Config)?|tarteaucitron"
    r"|__tcfapi|__gpp|__uspapi|__cmp|_iub|axeptioSDK|_axcb|axeptioSettings|getCkyConsent|CookieYes|cmplz_\w+"
    r"|wp_has_consent|wp_consent_\w+"
    r"|BorlabsCookie|borlabsCookieConfig|Osano|airgap|transcend|ketch|Termly|truste|TrustArc|CookieFirst|CookieScript"
    r"|cookiehub|silktideCookieBannerManager"
    r"|silktideConsentManager|orejime(?:Config)?|Orejime|cmp_\w+|_sp_|gdprCookieNotice\w*|gdprCookies|enzuzo|Enzuzo"
    r"|consentApi"
    r"|useConsentManager|useCookieConsent|useCookieConsentContext|useConsentState|useKlaro|useDidomi|useUsercentrics"
    r"|useCookieControl"
    r"|getCookieConsentValue|hasCookieConsent|acceptedCategory|acceptedService"
)
LIBRARY: Final = re.compile(rf"(?<![\w$.])(?:(?:window|globalThis|self)\.)?(?:{_LIBRARY})(?![\w$])")
# Names that packages of consent libraries have beyond the known ones.
_FAMILIES: Final = (
    r"@orestbida/[\w-]+|tarteaucitron|@c15t|@c15t/[\w-]+"
    r"|(?:@[\w-]+/)?(?:react|vue|ngx?|nuxt|gatsby|angular|svelte|next|solid|preact|ember)"
    r"-(?:plugin-)?(?:cookie-?(?:consent|banner|law|notice|control|bot|manager|hub|yes|first)|gdpr|consent|klaro"
    r"|onetrust|usercentrics|iubenda|didomi|tarteaucitron|axeptio)[\w-]*"
    r"|(?:@[\w-]+/)?cookie-?(?:consent|banner|notice|policy)(?:-js|-banner)?|gdpr-cookie[\w-]*|@?cookieyes[\w-]*|osano[\w-]*"
    r"|@osano/[\w-]+|ketch[\w-]*|@ketch[\w-]*/[\w-]+"
    r"|@transcend-io/[\w-]+|secureprivacy[\w-]*|termly[\w-]*|complianz[\w-]*|@iubenda/[\w-]+|iubenda[\w-]*"
    r"|@usercentrics/[\w-]+|@didomi/[\w-]+|axeptio[\w-]*"
    r"|@sourcepoint/[\w-]+|@trustarc[\w-]*/[\w-]+|@iabtcf/[\w-]+|@cookiehub/[\w-]+"
    r"|silktide[\w-]*|enzuzo[\w-]*|@consentmanager/[\w-]+"
    r"|gatsby-plugin-gdpr-[\w-]+|consent-manager|@segment/(?:consent-manager|analytics-consent-[\w-]+)"
    r"|cookiefirst[\w-]*|civic-cookie-control|@analytics/cookie-consent"
    r"|@cookie-consent/[\w-]+|svelte-cookie-consent|cc-cookie[\w-]*|cookie_consent|expo-tracking-transparency"
    r"|react-native-tracking-transparency|react-native-google-mobile-ads/consent"
)
# Packages of consent libraries, and their submodules.
PACKAGE: Final = re.compile(rf"(?:{'|'.join(map(re.escape, libraries()))}|{_FAMILIES})(?:/[\w./-]{{0,200}})?")
# A key under which a visitor's choice is stored.
KEY: Final = re.compile(
    r"consent|gdpr|dsgvo|rgpd|ccpa|lgpd|optanon|tarteaucitron|klaro|didomi|cookieyes|euconsent"
    r"|cookie[-_.: ]?(?:accept|choice|allow|approv|agree|decision|permission|pref|status|control|settings?|polic"
    r"|notice|banner|law|bar|level|opt)"
    r"|(?:accept|allow|agree|approve|dismiss)(?:ed|s)?[-_.: ]?(?:all[-_]?|the[-_]?)?cookies?|cookies?[-_.: ]?(?:ok"
    r"|accepted|allowed)"
    r"|(?:tracking|analytics|marketing|statistics|stats|ads?)[-_.: ]?(?:is[-_]?)?(?:accept|allow|agree|approv"
    r"|opt[-_]?in|enabled|permission|granted|choice|pref)"
    r"|(?:accept|allow|agree)(?:ed|s)?[-_.: ]?(?:tracking|analytics|marketing|statistics)|opt(?:ed)?[-_]?in(?![a-z])"
    r"|privacy[-_.: ]?(?:pref|choice|setting|accept|level|option)",
    re.IGNORECASE,
)
# Of a key, name, or value: the visitor refuses, or hasn't been asked. Nothing follows from its absence.
REFUSAL: Final = re.compile(
    r"opt(?:ed)?[-_ ]?out|declin|reject|refus|(?<![a-z])den(?:y|ied)|(?<=[a-z])Den(?:y|ied)|revok|withdr[ae]w|disabl"
    r"|disallow|do_?-?not_?-?track|(?<![a-z])dnt(?![a-z])|ablehn|"
    r"withoutconsent|noconsent|no_consent",
    re.IGNORECASE,
)
# The banner is shown, or consent is missing or required.
_ASKING: Final = re.compile(
    r"(?:need|require|missing|await|pending|show|open|visible|hide|display|ask|is_?loading|prompt)s?(?:ed"
    r"|ing)?_?(?:for_?)?(?:the_?)?(?:cookie_?)?(?:consent|banner|gdpr|cookie|privacy)"
    r"|(?:consent|gdpr|cookie|banner|privacy)_?(?:banner|bar|popup|modal|dialog|notice)?_?(?:is_?)?(?:need|require"
    r"|missing|pending|show|open|visible|prompt|applies|region|collection)",
    re.IGNORECASE,
)
# Names that say that the visitor has consented.
_STRONG: Final = re.compile(
    r"consent(?!_?collection|screen|_?url|_?link|_?page|_?text|_?message)|(?:cookies?|tracking|analytics|marketing"
    r"|statistics|gdpr|ads)_?(?:is_?|are_?|was_?|been_?)?(?:accepted|agreed|granted|opt(?:ed)?_?in)"
    r"|(?:accepted|agreed|approved|granted|optedin)_?(?:to_?|all_?)?(?:the_?)?(?:cookies?|tracking|analytics|marketing"
    r"|statistics|gdpr|ads|gtm|google_?(?:analytics|tag))|gdpr_?(?:ok|accept)"
    r"|has_?(?:accepted|agreed|opted_?in)|opted_?in(?![a-z])"
    # Visitors allow, sites enable.
    r"|(?:cookies?|tracking|analytics|marketing|statistics)_?(?:is_?|are_?)?(?:allowed|permitted)"
    r"|(?:can|may)_?(?:write|set|store|use)_?(?:analytics|tracking|marketing|optional)?_?cookies",
    re.IGNORECASE,
)
# Names of values that may be the visitor's choice, or a setting of the site.
_WEAK: Final = re.compile(
    r"(?:allow|permit|enable|accept|agree|can|should)(?:ed|s)?_?(?:to_?|write_?|use_?|set_?|load_?)?(?:track|analytics|marketing|statistics|ads"
    r"|cookies?)"
    r"|(?:track|tracking|analytics|marketing|statistics|cookies?|ads)_?(?:is_?|are_?)?(?:allow|permit|approv|enabl"
    r"|accept|ok(?![a-z]))"
    r"|(?:^|[.!])(?:enabled|allowed|accepted|granted)$|opt_?in(?![a-z])|gdpr|dsgvo|rgpd|privacy"
    r"|(?:prefs?|preferences|choices|permissions|categories|settings|cookies?)(?:\.value)?\??\.(?:\w+\.)?(?:analytics"
    r"|marketing|statistics|stats|tracking|performance|targeting|advertising|ads|cookies)",
    re.IGNORECASE,
)
# Settings of the site, and the environment that code runs in. They aren't the visitor's choice.
_SETTING: Final = re.compile(
    r"process\.|import\.meta|\benv\b|\bENV\b|config|Config|CONFIG|\bsite\.|\bSite\.|theme|production|development"
    r"|NODE_ENV|hostname|location\b|\bdebug|\.id\b|[a-z_]Id\b|_id\b|ID\b|[kK]ey\b|KEY\b|"
    r"^[A-Z][A-Z0-9_]+$|navigator\.(?!\w*[tT]rack)"
)
# Values that a comparison uses if the visitor has refused, or hasn't decided.
_NOT_YES: Final = re.compile(
    r"(?:false|0|no|n|off|none|null|undefined|nil|never|unset|unknown|undecided|pending|necessary|essential|required"
    r"|minimal|strict\w*|default|dismiss\w*|closed|prompt|basic|technical|)"
    r"|.*(?:den(?:y|ied)|declin|reject|refus|disallow|opt[-_]?out|disabl|revok|withdr|necessary[-_]?only"
    r"|only[-_]?necessary|not[-_]).*",
    re.IGNORECASE | re.DOTALL,
)
CATEGORY: Final = re.compile(
    r"(?:analytics?|marketing|statistics?|measurement|performance|targeting|advertis\w*|ads?|preferences"
    r"|functional\w*|social\w*|experience|tracking|personali[sz]ation|media|external\w*|C000[2-5]|unclassified)",
    re.IGNORECASE,
)
# Names of handlers that run when the visitor agrees, and when the visitor doesn't.
ACCEPTS: Final = re.compile(
    r"(?:^|[^a-z])(?:on|handle|do|did|when|if|after|with|set|give|grant|confirm|save)?_?(?:user|cookies?|all"
    r"|visitor)?_?(?:accept|agree|allow|opt_?in|grant|consent)(?:ed|s|ing)?",
    re.IGNORECASE,
)


def says_yes(literal: str) -> bool:
    """Returns whether a value that the choice is compared with stands for consent."""
    return not _NOT_YES.fullmatch(literal.strip())


def is_key(text: str) -> bool:
    """Returns whether a text contains a key under which a visitor's consent is stored."""
    return bool(KEY.search(text)) and not REFUSAL.search(text)


def strength(name: str) -> int:
    """Returns 2 if a name says that the visitor has consented, 1 if it may, -1 if it says the opposite, otherwise 0."""
    name = name[-200:]
    if REFUSAL.search(name):
        return -1
    if _ASKING.search(name):
        return 1
    if _STRONG.search(name):
        return 2
    if _SETTING.search(name):
        return 0
    return 1 if _WEAK.search(name) else 0


def asks(name: str) -> bool:
    """Returns whether a name says that consent is missing, or is being asked for."""
    return bool(_ASKING.search(name[-200:]))


def accepts(name: str) -> bool:
    """Returns whether a handler's name says that it runs when the visitor agrees."""
    name = name[-100:]
    return bool(ACCEPTS.search(name)) and not REFUSAL.search(name)


def refuses(text: str) -> bool:
    return bool(REFUSAL.search(text))
