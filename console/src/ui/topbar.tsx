/** The bar above every page. */
import { useEffect, useRef } from "preact/hooks";
import { session, signOut } from "../api/session";
import { pagePath } from "../logic/paths";
import { helpShown } from "./keys";
import { route } from "./router";
import { nextTheme, theme } from "./theme";

const PLACES: [string, string][] = [
  ["", "CRDs"],
  ["review", "Review"],
  ["convert", "Convert"],
  ["rehearsal", "Rehearse"],
  ["migrations", "Migrations"],
  ["webhooks", "Webhooks"],
];
const INSIDE: Record<string, string> = { crds: "", objects: "", object: "" };

export function TopBar() {
  const name = route.value.parts?.[0] ?? "";
  const current = INSIDE[name] ?? name;
  const shown = useRef<HTMLElement>(null);
  useEffect(() => shown.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current]);
  return (
    <header class="topbar">
      <a class="brand" href="/console/">
        <img src="/console/assets/icon.svg" alt="" width="24" height="24" /> instar
      </a>
      <nav aria-label="pages" ref={shown}>
        {PLACES.map(([place, text]) => (
          <a key={place} href={place === "" ? "/console/" : pagePath(place)} aria-current={place === current ? "page" : undefined}>
            {text}
          </a>
        ))}
      </nav>
      <div class="tools">
        <button type="button" class="quiet" onClick={() => (helpShown.value = true)} aria-label="keyboard shortcuts" title="Keyboard shortcuts (?)">
          ?
        </button>
        <button type="button" class="quiet" onClick={nextTheme} title="Theme (t)" aria-label={`theme: ${theme.value}`}>
          {{ system: "◐", light: "☀", dark: "☾" }[theme.value]}
        </button>
        <Place />
        <Who />
      </div>
    </header>
  );
}

/** Which cluster this is, and whether it can be changed: whoever has two tabs open must see it. */
function Place() {
  const server = session.value?.server;
  if (!session.value?.authenticated || !server) return null;
  const address = server.url.replace(/^https?:\/\//, "");
  return (
    <>
      <span class="cluster" title={`${server.url} ${server.version}`}>
        {server.context && <strong>{server.context}</strong>} <span class="hint">{address}</span>
      </span>
      {server.readOnly === true && (
        <span class="badge warn" title="The server refuses every write (--read-only)">
          read-only
        </span>
      )}
    </>
  );
}

function Who() {
  const known = session.value;
  if (!known?.authenticated || !known.user) return null;
  const bound = known.how === "certificate" || known.how === "kubeconfig";
  const how = known.how === "certificate" ? "by your browser's certificate" : "by the kubeconfig";
  return (
    <>
      <span class="who" title={known.user.groups.join(", ")}>
        {known.user.username}
      </span>
      {bound ? (
        <span class="hint">{how}</span>
      ) : (
        <button type="button" class="quiet" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
    </>
  );
}
