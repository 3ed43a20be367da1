// The advertising pixel. It is started with the page, whatever the visitor chose.
export function startPixel() {
  const script = document.createElement("script");
  script.async = true;
  script.src = "https://connect.facebook.net/en_US/fbevents.js";
  document.head.appendChild(script);

  window.fbq = window.fbq || ((...call) => (window.fbq.queue = [...(window.fbq.queue || []), call]));
  window.fbq("init", "1029384756");
  window.fbq("track", "PageView");
}
