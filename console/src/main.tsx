import { render } from "preact";
import { App } from "./app";
import { startKeys } from "./ui/keys";
import { startRouter } from "./ui/router";
import { startTheme } from "./ui/theme";
import "./styles/index.css";

startTheme();
startRouter();
startKeys();
const root = document.getElementById("app");
if (root) render(<App />, root);
