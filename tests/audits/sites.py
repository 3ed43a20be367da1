"""Small websites with a known truth, for the audits. A page is put together from few parts.

A truth is a set of IDs of findings, with the kinds abbreviated as in KINDS. Every host that isn't a website answers as
a tracker would: a script that does nothing.
"""

from dataclasses import dataclass, field

KINDS = {
    "before": "loaded-before-consent",
    "refused": "loads-after-refusal",
    "cookie": "cookie-before-consent",
    "longer": "lives-longer-than-declared",
    "unfair": "no-way-to-refuse",
    "mode": "consent-mode-signals-missing",
}
HOTJAR = "https://static.hotjar.com/c/hotjar-1.js"
TAG = f'<script async src="{HOTJAR}"></script>'
LOAD = f"document.head.append(Object.assign(document.createElement('script'),{{src:'{HOTJAR}'}}));"
PLAIN = f'<script type="text/plain" data-category="analytics" src="{HOTJAR}"></script>'
ID = "f3a91c07d2e84b65a0c7e1f2"
TEXT = "<p>We use cookies to measure how this shop is used.</p>"
YEAR = 31_536_000


def banner(
    accept: str = LOAD,
    refuse: str | None = "",
    labels: str = "Accept all|Reject all|Settings",
    text: str = TEXT,
    tag: str = "button",
) -> str:
    """Returns a banner of the site's own. accept, refuse: the code of its buttons. Without the latter, it has one."""
    yes, no, more = labels.split("|")
    close = "document.querySelector('#bar').remove();"
    buttons = f'<{tag} id="yes">{yes}</{tag}> <button>{more}</button>'
    code = f"document.querySelector('#yes').onclick=()=>{{localStorage.choice='yes';{close}{accept}}};"
    if refuse is not None:
        buttons += f' <{tag} id="no">{no}</{tag}>'
        code += f"document.querySelector('#no').onclick=()=>{{localStorage.choice='no';{close}{refuse}}};"
    shown = f'<div id="bar" style="position:fixed;bottom:0">{text}{buttons}</div>'
    return f"{shown}<script>if(localStorage.choice)document.querySelector('#bar').remove();else{{{code}}}</script>"


def in_shadow(refuses: bool, mode: str = "open") -> str:
    no = "<button id=no>Reject all</button>" if refuses else ""
    markup = f"<div style='position:fixed;bottom:0'>{TEXT}<button id=yes>Accept all</button>{no}</div>"
    return f"""<consent-bar></consent-bar><script>
      const root = document.querySelector('consent-bar').attachShadow({{mode: '{mode}'}});
      if (!localStorage.choice) {{ root.innerHTML = `{markup}`;
      for (const it of root.querySelectorAll('button')) it.onclick = () => {{
        localStorage.choice = it.id; root.innerHTML = ''; if (it.id === 'yes') {{ {LOAD} }} }}; }}</script>"""


def library(code: str, *files: str, body: str = PLAIN) -> str:
    scripts = "".join(f'<script src="/{name}"></script>' for name in files)
    return f"{body}{scripts}<script>{code}</script>"


def consent_3(extra: str = "", second: str = ", acceptNecessaryBtn: 'Reject all'") -> str:
    return f"""CookieConsent.run({{ {extra} categories: {{ necessary: {{ enabled: true, readOnly: true }},
      analytics: {{}} }}, language: {{ default: 'en', translations: {{ en: {{ consentModal: {{ title: 'Cookies',
      description: 'We use cookies.', acceptAllBtn: 'Accept all'{second} }},
      preferencesModal: {{ sections: [] }} }} }} }} }});"""


STYLE_2 = '<link rel="stylesheet" href="/cookieconsent.css">'
CONSENT_2 = """initCookieConsent().run({ current_lang: 'en', page_scripts: true, hide_from_bots: true,
  languages: { en: { consent_modal: { title: 'Cookies', description: 'We use cookies.',
  primary_btn: { text: 'Accept all', role: 'accept_all' },
  secondary_btn: { text: 'Reject all', role: 'accept_necessary' } },
  settings_modal: { title: 'Cookies', blocks: [
    { title: 'Analytics', toggle: { value: 'analytics', enabled: false } }] } } } });"""
KLARO = """<script>var klaroConfig = { acceptAll: true, lang: 'en', EXTRA translations: { en: { ok: 'Accept all',
  decline: 'Reject all', purposes: { analytics: 'Analytics' } } }, services: [{ name: 'hotjar', purposes: ['analytics'],
  SERVICE }] };</script>"""
KLARO_TAG = f'<script type="text/plain" data-name="hotjar" data-type="text/javascript" data-src="{HOTJAR}"></script>'
KLARO_RIGHT = KLARO.replace("EXTRA", "").replace("SERVICE", "")
TARTEAUCITRON = """tarteaucitron.init({ hashtag: '#x', cookieName: 'tac', orientation: 'bottom', groupServices: false,
  showAlertSmall: false, cookieslist: false, adblocker: false, DenyAllCta: true, AcceptAllCta: true, highPrivacy: true,
  handleBrowserDNTRequest: false, showIcon: false, useExternalCss: true, useExternalJs: false });
  tarteaucitron.services.own = { key: 'own', type: 'analytic', name: 'Own', uri: '', needConsent: true, cookies: [],
    js: () => { LOAD } };
  (tarteaucitron.job = tarteaucitron.job || []).push('own');""".replace("LOAD", LOAD)
OSANO = """cookieconsent.initialise({ type: 'opt-in', content: { allow: 'Accept all', deny: 'Reject all', message:
  'We use cookies.' }, onStatusChange(status) { if (status === 'allow') { LOAD } } });"""
OREJIME = """<script>window.orejimeConfig = { privacyPolicyUrl: '/privacy', forceBanner: true, purposes: [{
  id: 'hotjar', title: 'Hotjar', cookies: [] DEFAULT }] };</script>"""
OREJIME_TAG = f'<template data-purpose="hotjar">{TAG}</template>'

C15T = """import { ConsentBanner, ConsentDialog, ConsentManagerProvider } from '@c15t/react';
import { createRoot } from 'react-dom/client';
const { options, banner } = window.consent;
createRoot(document.querySelector('#root')).render(
  <ConsentManagerProvider options={{ mode: 'offline', consentCategories: ['necessary', 'measurement'], ...options }}>
    <ConsentBanner {...banner} />
    <ConsentDialog />
  </ConsentManagerProvider>
);
"""


def c15t(script: str = "", banner: str = "", body: str = "") -> str:
    """Returns a page with the banner of c15t for React. script, banner: more of their settings."""
    scripts = f"scripts: [{{ id: 'hotjar', src: '{HOTJAR}', category: 'measurement', {script} }}]"
    setup = f"<script>window.consent = {{ options: {{ {scripts} }}, banner: {{ {banner} }} }}</script>"
    return f'{body}<link rel="stylesheet" href="/c15t.css"><div id="root"></div>{setup}<script src="/c15t.js"></script>'


def stub(setup: str, body: str = "") -> str:
    """Returns a banner with the documented interface of a library that only its host serves."""
    bar = f'<div id="bar" style="position:fixed">{TEXT}<button>✓</button><button>✗</button></div>'
    return f"{body}{bar}<script>const gone=()=>document.querySelector('#bar')?.remove();{setup}</script>"


def gtag(default: str = "", after: str = "") -> str:
    return f"""<script>window.dataLayer=window.dataLayer||[];function gtag(){{dataLayer.push(arguments);}}
      {default}</script>
      <script async src="https://www.googletagmanager.com/gtag/js?id=G-ABC1234"></script>
      <script>gtag('js', new Date());gtag('config','G-ABC1234');{after}</script>"""


V1 = "ad_storage:'denied',analytics_storage:'denied'"
V2 = f"{V1},ad_user_data:'denied',ad_personalization:'denied'"
DENIED = f"gtag('consent','default',{{{V2}}});"
GRANT = (
    "gtag('consent','update',{analytics_storage:'granted'});"
    "fetch('https://www.google-analytics.com/g/collect?gcs=G111',{mode:'no-cors'});"
)
GOOGLE = LOAD.replace(HOTJAR, "https://www.googletagmanager.com/gtag/js?id=G-1")
BEACON = "addEventListener('pagehide',()=>navigator.sendBeacon('{}','x'));"


def table(lifetime: str) -> str:
    return f"<table><tr><th>Name</th><th>Lifetime</th></tr><tr><td>prefs</td><td>{lifetime}</td></tr></table>"


@dataclass
class Site:
    """A website. pages: by path; headers: of its pages; status: of its start page;
    aliases: canonical names by host; by: what answers its banner; limits: other ones than those of the test."""

    body: str = ""
    truth: str = ""
    outcome: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    headers: list[tuple[str, str]] = field(default_factory=list)
    status: int = 200
    aliases: dict[str, str] = field(default_factory=dict)
    reason: str | None = None
    by: str | None = None
    limits: dict[str, float] = field(default_factory=dict)
    scheme: str = "https"

    @property
    def expected(self) -> str:
        return self.outcome or ("failed" if self.truth else "passed")


SITES = {
    # A banner of the site's own
    "own-right": Site(by="button", body=banner()),
    "own-loads-first": Site(TAG + banner(), "before:hotjar refused:hotjar"),
    "own-ignores-refusal": Site(banner(refuse=LOAD), "refused:hotjar"),
    "own-without-refusal": Site(banner(refuse=None), "unfair:SITE"),
    "own-all-wrong": Site(TAG + banner(refuse=None), "before:hotjar unfair:SITE"),
    "own-german": Site(
        by="button", body=banner(labels="Alle akzeptieren|Nur notwendige|Mehr", text="Wir nutzen Cookies.")
    ),
    "own-french-unfair": Site(
        banner(refuse=None, labels="Tout accepter||Paramétrer", text="<p>Des cookies.</p>"), "unfair:SITE"
    ),
    "own-with-links": Site(by="button", body=banner(tag="a")),
    "own-refused-on-next-page": Site(
        banner() + f"<script>if(localStorage.choice==='no'){{{LOAD}}}</script>", "refused:hotjar"
    ),
    "own-legitimate-interest": Site(
        banner(refuse="new Image().src='https://bat.bing.com/action/0'"), "refused:microsoft-advertising"
    ),
    "none-clean": Site("<p>Nothing here.</p>"),
    "none-tracks": Site(TAG, "before:hotjar"),
    "none-harmless-parties": Site(
        '<script src="https://js.stripe.com/v3"></script><script src="https://consent.cookiebot.com/uc.js"></script>'
        '<script src="https://cdn.jsdelivr.net/npm/x"></script><img src="https://images.unknown.example/logo.png">'
    ),
    "article-on-cookies": Site("<main><p>Cookies: how to accept them.</p><button>Accept the terms</button></main>"),
    "shadow-right": Site(by="button", body=in_shadow(True)),
    "shadow-without-refusal": Site(in_shadow(False), "unfair:SITE"),
    "shadow-closed-right": Site(by="button", body=in_shadow(True, "closed")),
    "shadow-closed-without-refusal": Site(in_shadow(False, "closed"), "unfair:SITE"),
    "shadow-declared-ignores-refusal": Site(
        f'<div style="position:fixed"><template shadowrootmode="closed">{TEXT}<button onclick="go()">Accept all'
        '</button><button onclick="go()">Reject all</button></template></div>'
        f"<script>const bar=document.querySelector('div'),go=()=>{{localStorage.x=1;bar.remove();{LOAD}}};"
        "if(localStorage.x)bar.remove()</script>",
        "refused:hotjar",
        by="button",
    ),
    "frame-banner": Site(
        by="button",
        body=f'<iframe src="/bar"></iframe><script>onmessage=(it)=>{{localStorage.choice=it.data;'
        f"document.querySelector('iframe').remove();if(it.data==='yes'){{{LOAD}}}}};"
        "if(localStorage.choice)document.querySelector('iframe').remove();</script>",
        pages={
            "/bar": TEXT + "<button onclick=\"parent.postMessage('yes','*')\">Accept all</button>"
            "<button onclick=\"parent.postMessage('no','*')\">Reject all</button>"
        },
    ),
    # Consent libraries
    "cookieconsent-3-right": Site(by="CookieConsent", body=library(consent_3(), "cookieconsent.umd.js")),
    "cookieconsent-3-ungated": Site(
        library(consent_3(), "cookieconsent.umd.js", body=TAG), "before:hotjar refused:hotjar"
    ),
    "cookieconsent-3-opt-out": Site(
        library(
            consent_3("mode: 'opt-out',").replace("analytics: {}", "analytics: { enabled: true }"),
            "cookieconsent.umd.js",
        ),
        "before:hotjar",
    ),
    "cookieconsent-3-unfair": Site(
        library(consent_3(second=", showPreferencesBtn: 'Settings'"), "cookieconsent.umd.js"), "unfair:SITE"
    ),
    "cookieconsent-2-right": Site(by="button", body=library(CONSENT_2, "cookieconsent.js", body=STYLE_2 + PLAIN)),
    "cookieconsent-2-ungated": Site(
        library(CONSENT_2, "cookieconsent.js", body=STYLE_2 + TAG), "before:hotjar refused:hotjar"
    ),
    "klaro-right": Site(by="Klaro", body=KLARO_RIGHT + library("", "klaro.js", body=KLARO_TAG)),
    "klaro-opt-out": Site(
        KLARO.replace("EXTRA", "").replace("SERVICE", "default: true, optOut: true")
        + library("", "klaro.js", body=KLARO_TAG),
        "before:hotjar",
    ),
    "klaro-ungated": Site(
        KLARO_RIGHT + library("", "klaro.js", body=TAG),
        "before:hotjar refused:hotjar",
    ),
    "tarteaucitron-right": Site(
        by="tarteaucitron.js", body=library(TARTEAUCITRON, "tarteaucitron/tarteaucitron.js", body="")
    ),
    "tarteaucitron-implied": Site(
        library(TARTEAUCITRON, "tarteaucitron/tarteaucitron.js", body=TAG),
        "before:hotjar refused:hotjar",
    ),
    "osano-right": Site(by="button", body=library(OSANO.replace("LOAD", LOAD), "cookieconsent.min.js", body="")),
    "osano-informs-only": Site(
        library(OSANO.replace("opt-in", "info").replace("LOAD", ""), "cookieconsent.min.js", body=TAG),
        "before:hotjar unfair:SITE",
    ),
    "orejime-right": Site(
        by="Orejime", body=OREJIME.replace("DEFAULT", "") + OREJIME_TAG + library("", "orejime-standard-en.js", body="")
    ),
    "orejime-ungated": Site(
        OREJIME.replace("DEFAULT", "") + TAG + library("", "orejime-standard-en.js", body=""),
        "before:hotjar refused:hotjar",
    ),
    "c15t-right": Site(by="c15t", body=c15t()),
    "c15t-ungated": Site(c15t(body=TAG), "before:hotjar refused:hotjar"),
    "c15t-always-loads": Site(c15t(script="alwaysLoad: true"), "before:hotjar refused:hotjar"),
    "c15t-unfair": Site(c15t(banner="layout: ['customize', 'accept']"), "unfair:SITE"),
    "cookiebot": Site(
        by="Cookiebot", body=stub(f"window.Cookiebot={{submitCustomConsent(a,b,c){{gone();if(b){{{LOAD}}}}}}};")
    ),
    "cookiebot-fails-to-refuse": Site(
        banner() + f"<script>window.Cookiebot={{submitCustomConsent(_,it){{if(!it)throw 1;{LOAD}}}}};</script>"
    ),
    "onetrust-wrong": Site(
        stub(f"window.OneTrust={{RejectAll(){{gone();{LOAD}}},AllowAll(){{gone();{LOAD}}}}};"), "refused:hotjar"
    ),
    "usercentrics": Site(
        by="Usercentrics",
        body=stub(
            f"window.UC_UI={{isInitialized:()=>true,async denyAllConsents(){{}},async acceptAllConsents(){{{LOAD}}},"
            "closeCMP:gone};"
        ),
    ),
    "cookieyes": Site(
        by="CookieYes",
        body=stub(
            f"window.getCkyConsent=()=>({{}});window.performBannerAction=(it)=>{{gone();if(it==='accept_all'){{{LOAD}}}}};"
        ),
    ),
    "didomi-wrong": Site(
        stub("window.Didomi={setUserDisagreeToAll:gone,setUserAgreeToAll:gone};", TAG), "before:hotjar refused:hotjar"
    ),
    "by-rules-only": Site(
        by="autoconsent",
        body='<div id="cmplz-cookiebanner-container"><div class="cmplz-cookiebanner"><p>Cookies</p>'
        '<button class="cmplz-accept">1</button> <button class="cmplz-deny">2</button></div></div><script>'
        "const bar=document.querySelector('.cmplz-cookiebanner');for(const it of bar.children)it.onclick=()=>{"
        f"localStorage.choice='x';bar.remove();if(it.className.includes('accept')){{{LOAD}}}}};"
        "if(localStorage.choice)bar.remove();</script>",
    ),
    # Cookies
    "server-identifier": Site("<p>Hi</p>", "cookie:uid@website", headers=[("set-cookie", f"uid={ID}; Max-Age={YEAR}")]),
    "server-session": Site(
        "<p>Hi</p>",
        headers=[
            ("set-cookie", f"PHPSESSID={ID}; HttpOnly"),
            ("set-cookie", f"csrftoken={ID}; Max-Age={YEAR}"),
            ("set-cookie", f"theme=dark; Max-Age={YEAR}"),
            ("set-cookie", "gone=; Max-Age=0"),
        ],
    ),
    "script-identifier": Site(
        f"<script>document.cookie='_ga_ABC1234567=GS1.1.{ID}; max-age={YEAR}'</script>", "cookie:_ga_*@website"
    ),
    "cookie-after-acceptance": Site(banner(accept=f"document.cookie='_ga={ID};max-age={YEAR}'")),
    "third-party-cookie": Site(
        '<img src="https://ad.doubleclick.net/pixel">', "before:google-ads cookie:IDE@ad.doubleclick.net"
    ),
    "lives-longer": Site(table("30 days"), "longer:prefs", headers=[("set-cookie", f"prefs=big; Max-Age={YEAR}")]),
    "lives-beyond-all-numbers": Site(
        table("30 days") + table("1 day").replace("prefs", "*a" * 30),
        "longer:prefs",
        headers=[("set-cookie", f"prefs=big; Max-Age={'9' * 400}"), ("set-cookie", f"{'a' * 300}!=1")],
    ),
    "lives-as-declared": Site(table("12 Monate"), headers=[("set-cookie", f"prefs=big; Max-Age={YEAR}")]),
    # How requests hide
    "beacon-on-unload": Site(
        f"<script>{BEACON.format('https://www.google-analytics.com/g/collect')}</script>", "before:google-analytics"
    ),
    "beacon-to-unknown": Site(
        f"<script>{BEACON.format('https://log.collector.example/v')}</script>", "before:collector.example"
    ),
    "frame-embed": Site('<iframe src="https://www.youtube.com/embed/x"></iframe>', "before:youtube"),
    "frame-nested": Site('<iframe src="https://widget.unknown.example/nested"></iframe>', "before:hotjar"),
    "cloaked": Site(
        '<img src="https://metrics.SITE/b/ss">',
        "before:adobe-analytics",
        aliases={"metrics.SITE": "shop.sc.omtrdc.net"},
    ),
    "alias-of-host": Site('<img src="https://static.SITE/x.png">', aliases={"static.SITE": "d111.cloudfront.net"}),
    "lazy-on-scroll": Site(
        f'<div style="height:5000px">Long</div><script>onscroll=()=>{{{LOAD}onscroll=null}}</script>',
        "before:hotjar",
    ),
    "lazy-on-timer": Site(f"<script>setTimeout(()=>{{{LOAD}}},250)</script>", "before:hotjar"),
    "single-page": Site(
        '<a href="/shop" onclick="event.preventDefault();history.pushState(0,0,this.href);'
        f"document.title='Shop';{LOAD.replace(chr(34), chr(39))}\">Shop</a>",
        "before:hotjar",
        pages={"/shop": "<p>Shop</p>"},
    ),
    "second-page": Site('<a href="/about">About</a>', "before:hotjar", pages={"/about": TAG}),
    "worker": Site(
        f"<script>new Worker(URL.createObjectURL(new Blob([\"fetch('{HOTJAR}',{{mode:'no-cors'}})\"])))</script>",
        "before:hotjar",
    ),
    "made-up-addresses": Site(
        '<img src="data:[x">'
        + "".join(
            f"<script>eval(\"fetch('{HOTJAR}',{{mode:'no-cors'}})//# sourceURL={it}\")</script>"
            for it in ("http://[x", "https:?x", "https:///x", "https://a%5Cb/", "https://me@:80/", "http:x")
        ),
        "before:hotjar",
    ),
    "web-socket": Site("<script>new WebSocket('wss://ws.hotjar.com/api')</script>", "before:hotjar"),
    "own-redirect": Site('<img src="/go">', "before:meta-pixel"),
    "blocked-by-policy": Site(TAG, headers=[("content-security-policy", "script-src 'self'")]),
    "over-http": Site(TAG, "before:hotjar", scheme="http"),
    # Google's consent mode
    "mode-right": Site(gtag(DENIED) + banner(accept=GRANT)),
    "mode-pings-denied": Site(
        gtag(DENIED, "new Image().src='https://www.google-analytics.com/g/collect?gcs=G100';") + banner(accept=GRANT)
    ),
    "mode-missing": Site(gtag() + banner(accept=""), "before:google-analytics refused:google-analytics mode:SITE"),
    "mode-version-1": Site(gtag(f"gtag('consent','default',{{{V1}}});") + banner(accept=GRANT), "mode:SITE"),
    "mode-too-late": Site(gtag("", DENIED) + banner(accept=GRANT), "before:google-analytics refused:google-analytics"),
    "mode-missing-after-acceptance": Site(banner(accept=GOOGLE), "mode:SITE"),
    # Walls
    "wall-status": Site("<h1>Forbidden</h1>", outcome="blocked", status=403, reason="bot-protection"),
    "wall-challenge": Site("<title>Just a moment...</title>", outcome="blocked", status=503, reason="bot-protection"),
    "wall-captcha": Site("<p>Verify you are human</p>", outcome="blocked", reason="bot-protection"),
    "wall-login": Site(
        "<script>location='/login'</script>",
        outcome="blocked",
        reason="login",
        pages={"/login": "<input type=password>"},
    ),
    "wall-error": Site("<p>Oops</p>", outcome="blocked", status=500, reason="answer"),
}
