const KEY = "cookie_preferences";
const waiting = [];

export function hasConsent(category) {
  return JSON.parse(localStorage.getItem(KEY) || "{}")[category] === true;
}

export function onConsent(category, run) {
  if (hasConsent(category)) run();
  else waiting.push([category, run]);
}
