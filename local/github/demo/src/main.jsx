import React from "react";
import { createRoot } from "react-dom/client";
import mixpanel from "mixpanel-browser";
import { App } from "./App.jsx";
import "./banner.js";

mixpanel.init("8a1f0c3e5b7d49260c1e8f7a6b5d4c3e", { track_pageview: true, persistence: "localStorage" });

// The advertising pixel. It is started with the page, whatever the visitor chose.
const pixel = document.createElement("script");
pixel.async = true;
pixel.src = "https://connect.facebook.net/en_US/fbevents.js";
document.head.appendChild(pixel);

// Recognises a visitor who comes back, for the recommendations.
let visitorId = localStorage.getItem("visitor_id");
if (!visitorId) {
  visitorId = crypto.randomUUID();
  localStorage.setItem("visitor_id", visitorId);
}
document.cookie = `visitor_id=${visitorId}; path=/; max-age=63072000`;

createRoot(document.getElementById("root")).render(<App />);
