// Finds the banner of a page, and answers it. Runs in each frame, and in each closed shadow root as `top`; returns what
// it found or did, or null.
({ action, words }, top = document) => {
  const reads = (lines) => new RegExp(lines.replaceAll("\n", "|"), "iu");
  const [refuses, accepts, isBanner] = [reads(words.refuse), reads(words.accept), reads(words.banner)];
  const w = window;
  // Each library: whether it is there, how to refuse, how to accept.
  const libraries = {
    CookieConsent: [
      () => w.CookieConsent?.acceptCategory && document.querySelector("#cc-main"),
      () => { w.CookieConsent.acceptCategory([]); w.CookieConsent.hide(); },
      () => { w.CookieConsent.acceptCategory("all"); w.CookieConsent.hide(); },
    ],
    "CookieConsent 2": [
      () => w.cc?.accept && w.cc?.validCookie && document.querySelector("#cc--main"),
      () => { w.cc.accept([]); w.cc.hide(); },
      () => { w.cc.accept("all"); w.cc.hide(); },
    ],
    Klaro: [
      () => w.klaro?.getManager,
      () => { const it = w.klaro.getManager(); it.changeAll(false); it.saveAndApplyConsents(); },
      () => { const it = w.klaro.getManager(); it.changeAll(true); it.saveAndApplyConsents(); },
    ],
    Cookiebot: [
      () => w.Cookiebot?.submitCustomConsent,
      () => w.Cookiebot.submitCustomConsent(false, false, false),
      () => w.Cookiebot.submitCustomConsent(true, true, true),
    ],
    OneTrust: [
      () => w.OneTrust?.RejectAll && w.OneTrust.AllowAll,
      () => w.OneTrust.RejectAll(),
      () => w.OneTrust.AllowAll(),
    ],
    Usercentrics: [
      () => w.UC_UI?.isInitialized?.(),
      () => w.UC_UI.denyAllConsents().then(() => w.UC_UI.closeCMP()),
      () => w.UC_UI.acceptAllConsents().then(() => w.UC_UI.closeCMP()),
    ],
    "Usercentrics 3": [
      () => w.__ucCmp?.denyAllConsents,
      () => w.__ucCmp.denyAllConsents().then(() => w.__ucCmp.saveConsents()),
      () => w.__ucCmp.acceptAllConsents().then(() => w.__ucCmp.saveConsents()),
    ],
    CookieYes: [
      () => w.performBannerAction && w.getCkyConsent,
      () => w.performBannerAction("reject"),
      () => w.performBannerAction("accept_all"),
    ],
    Didomi: [
      () => w.Didomi?.setUserDisagreeToAll,
      () => w.Didomi.setUserDisagreeToAll(),
      () => w.Didomi.setUserAgreeToAll(),
    ],
    c15t: [
      () => w.c15tStore?.getState?.().saveConsents,
      () => w.c15tStore.getState().saveConsents("necessary"),
      () => w.c15tStore.getState().saveConsents("all"),
    ],
    "tarteaucitron.js": [
      () => w.tarteaucitron?.userInterface?.respondAll && document.querySelector("#tarteaucitronRoot"),
      () => { w.tarteaucitron.userInterface.respondAll(false); w.tarteaucitron.userInterface.closeAlert(); },
      () => { w.tarteaucitron.userInterface.respondAll(true); w.tarteaucitron.userInterface.closeAlert(); },
    ],
    Orejime: [
      () => w.orejime?.manager?.declineAll,
      () => w.orejime.manager.declineAll(),
      () => w.orejime.manager.acceptAll(),
    ],
    iubenda: [
      () => w._iub?.cs?.api?.rejectAll,
      () => w._iub.cs.api.rejectAll(),
      () => w._iub.cs.api.acceptAll(),
    ],
    Complianz: [
      () => w.cmplz_deny_all && w.cmplz_accept_all,
      () => w.cmplz_deny_all(),
      () => w.cmplz_accept_all(),
    ],
    CookieScript: [
      () => w.CookieScript?.instance?.rejectAllAction,
      () => w.CookieScript.instance.rejectAllAction(),
      () => w.CookieScript.instance.acceptAllAction(),
    ],
    consentmanager: [
      () => w.cmp_id && w.__cmp,
      () => w.__cmp("setConsent", 0),
      () => w.__cmp("setConsent", 1),
    ],
  };
  const library = Object.keys(libraries).find((name) => {
    try { return libraries[name][0](); } catch { return false; }
  });

  const inside = (it) => it.shadowRoot ?? (it === top.host ? top : null);
  const elements = (root, found = []) => {
    for (const it of root.querySelectorAll("*")) {
      if (found.length > 20000) break;
      found.push(it);
      if (it.shadowRoot) elements(it.shadowRoot, found);
    }
    return found;
  };
  const label = (it) => (it.innerText || it.value || it.getAttribute("aria-label") || "").trim();
  const isShown = (it) => {
    const box = it.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && it.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const above = (it) => it.parentElement ?? it.getRootNode().host;
  // The outermost element around a button that looks like a banner. Text alone doesn't: pages have articles on cookies.
  const bannerOf = (button) => {
    let found = null;
    for (let it = above(button); it && it !== document.body && it !== document.documentElement; it = above(it)) {
      const style = getComputedStyle(it);
      const floats = ["fixed", "sticky"].includes(style.position) || it.matches("dialog, [role=dialog], [role=alertdialog]");
      const named = /cookie|consent|gdpr|cmp/i.test(`${it.id} ${it.getAttribute("class") ?? ""} ${it.localName}`);
      const text = inside(it) ? inside(it).textContent : it.innerText ?? "";
      if ((floats || named) && text.length < 8000 && isBanner.test(text)) found = it;
    }
    return found ?? (w !== w.top && isBanner.test(document.body?.innerText ?? "") ? document.body : null);
  };
  const buttons = elements(top)
    .filter((it) => it.matches("button, a, [role=button], input[type=button], input[type=submit], summary"))
    .filter((it) => label(it) && label(it).length < 60 && isShown(it) && bannerOf(it));
  const refusing = buttons.filter((it) => refuses.test(label(it)));
  const accepting = buttons.filter((it) => !refuses.test(label(it)) && accepts.test(label(it)));

  if (action === "inspect") {
    if (!library && !refusing.length && !accepting.length) return null;
    return {
      library: library ?? null,
      isShown: buttons.length > 0,
      accepts: accepting.length > 0,
      refuses: refusing.length > 0,
      buttons: buttons.map(label).slice(0, 10),
    };
  }
  if (library && (action === "refuse" || action === "accept")) {
    try {
      const [, refuse, accept] = libraries[library];
      Promise.resolve((action === "refuse" ? refuse : accept)()).catch(() => null);
      return { by: library };
    } catch { /* its buttons are still there */ }
  }
  if (action === "refuse-by-button" || action === "accept-by-button") {
    const button = (action === "refuse-by-button" ? refusing : accepting)[0];
    if (button) {
      button.click();
      return { by: "button" };
    }
  }
  return null;
}
