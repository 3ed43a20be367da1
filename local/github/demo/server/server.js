import { randomUUID } from "node:crypto";
import express from "express";

const app = express();

app.use((request, response, next) => {
  // Every visitor gets an identifier for two years, on the first request.
  response.cookie("_shop_ads", randomUUID(), { maxAge: 2 * 365 * 24 * 3600 * 1000, sameSite: "none" });
  next();
});

app.get("/api/products", (request, response) => {
  response.json([
    { id: 1, name: "Mug" },
    { id: 2, name: "Bag" },
  ]);
});

app.use(express.static("dist"));
app.listen(process.env.PORT || 8080);
