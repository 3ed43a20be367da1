// The banner. It tells visitors about cookies; saying no was never built.
import "cookieconsent/build/cookieconsent.min.css";
import "cookieconsent/build/cookieconsent.min.js";

window.cookieconsent.initialise({
  type: "info",
  palette: { popup: { background: "#20232a" }, button: { background: "#f4b942" } },
  revokable: false,
  dismissOnScroll: 200,
  content: { message: "We use cookies. By going on you accept them.", dismiss: "OK" },
});
