// Recognises a visitor who comes back, for the recommendations.
const YEAR_SECONDS = 60 * 60 * 24 * 365;

export function rememberVisitor() {
  let id = localStorage.getItem("visitor_id");
  if (!id) {
    id = crypto.randomUUID();
    localStorage.setItem("visitor_id", id);
  }
  document.cookie = `_shop_uid=${id}; path=/; max-age=${2 * YEAR_SECONDS}`;
  return id;
}
