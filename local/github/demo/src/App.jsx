import React, { useState } from "react";
import mixpanel from "mixpanel-browser";
import { ProductList } from "./components/ProductList.jsx";

// Made up for the demo: no such account exists.
const NEWSLETTER_API_SECRET = "wX7r2KpLq9ZtN4vB8sYc3mDfH6";

export function App() {
  const [email, setEmail] = useState("");

  async function order(event) {
    event.preventDefault();
    mixpanel.identify(email);
    window.fbq("init", "1029384756", { em: email });
    window.gtag("event", "purchase", { currency: "EUR", value: 18, email: email });
    await fetch("https://api.newsletter-sender.example/v2/contacts", {
      method: "POST",
      headers: { Authorization: `Bearer ${NEWSLETTER_API_SECRET}`, "Content-Type": "application/json" },
      body: JSON.stringify({ email }),
    });
    await fetch("/api/orders", { method: "POST", body: JSON.stringify({ email }) });
  }

  return (
    <main>
      <ProductList />
      <form onSubmit={order}>
        <label>
          Email <input type="email" value={email} onChange={(event) => setEmail(event.target.value)} />
        </label>
        <button>Order</button>
      </form>
    </main>
  );
}
