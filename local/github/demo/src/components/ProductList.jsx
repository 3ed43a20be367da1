import React, { useEffect, useState } from "react";
import { hasConsent, onConsent } from "../preferences.js";

export function ProductList() {
  const [products, setProducts] = useState([]);

  useEffect(() => {
    fetch("/api/products").then((answer) => answer.json()).then(setProducts);
  }, []);

  // Loaded once the visitor has agreed: nothing to find here.
  useEffect(() => {
    onConsent("analytics", () => {
      if (!hasConsent("analytics")) return;
      const script = document.createElement("script");
      script.src = "https://plausible.io/js/script.js";
      document.head.appendChild(script);
    });
  }, []);

  return (
    <ul>
      {products.map((product) => (
        <li key={product.id}>{product.name}</li>
      ))}
    </ul>
  );
}
