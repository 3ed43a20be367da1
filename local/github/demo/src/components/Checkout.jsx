import React, { useState } from "react";
import mixpanel from "mixpanel-browser";

const NEWSLETTER_API_KEY = "9f2c47be10d8463a9e5b0c7f61a2d8354be0";

export function Checkout() {
  const [email, setEmail] = useState("");
  const [phone, setPhone] = useState("");

  async function order(event) {
    event.preventDefault();
    mixpanel.identify(email);
    mixpanel.people.set({ $email: email, $phone: phone });
    window.gtag("event", "purchase", { email, phone_number: phone });
    await fetch("https://api.newsletter-sender.example/v2/contacts", {
      method: "POST",
      headers: { Authorization: `Bearer ${NEWSLETTER_API_KEY}`, "Content-Type": "application/json" },
      body: JSON.stringify({ email, phone }),
    });
    await fetch("/api/orders", { method: "POST", body: JSON.stringify({ email }) });
  }

  return (
    <form onSubmit={order}>
      <label>
        Email <input type="email" value={email} onChange={(event) => setEmail(event.target.value)} />
      </label>
      <label>
        Phone <input type="tel" value={phone} onChange={(event) => setPhone(event.target.value)} />
      </label>
      <button>Order</button>
    </form>
  );
}
