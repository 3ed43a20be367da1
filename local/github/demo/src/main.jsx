import React from "react";
import { createRoot } from "react-dom/client";
import mixpanel from "mixpanel-browser";
import { Checkout } from "./components/Checkout.jsx";
import { ProductList } from "./components/ProductList.jsx";
import { startPixel } from "./pixel.js";
import { rememberVisitor } from "./visitor.js";
import "./banner.js";

mixpanel.init("8a1f0c3e5b7d49260c1e8f7a6b5d4c3e", { track_pageview: true, persistence: "localStorage" });
startPixel();
rememberVisitor();

createRoot(document.getElementById("root")).render(
  <React.StrictMode>
    <ProductList />
    <Checkout />
  </React.StrictMode>,
);
