/** The console: its frame, and which page an address means. Pages are loaded when first needed. */
import { type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { readSession, session, signInByLink } from "./api/session";
import { type Problem, problemFrom } from "./api/problem";
import { Loading, ProblemNote } from "./ui/bits";
import { Help } from "./ui/help";
import { Page } from "./ui/page";
import { route } from "./ui/router";
import { SignIn } from "./ui/signin";
import { TopBar } from "./ui/topbar";

/** What every page is given: the rest of its path. */
export interface PageProps {
  parts: string[];
}

type Loader = () => Promise<ComponentType<PageProps>>;

const PAGES: Record<string, Loader> = {
  "": async () => (await import("./pages/home/home")).Home,
  crds: async () => (await import("./pages/crd/crd")).CrdPage,
  objects: async () => (await import("./pages/objects/objects")).ObjectsPage,
  object: async () => (await import("./pages/object/object")).ObjectPage,
  review: async () => (await import("./pages/review/review")).Review,
  convert: async () => (await import("./pages/convert/convert")).Convert,
  rehearsal: async () => (await import("./pages/rehearsal/rehearsal")).RehearsalPage,
  migrations: async () => (await import("./pages/migrations/migrations")).Migrations,
  webhooks: async () => (await import("./pages/webhooks/webhooks")).WebhooksPage,
};

const starting = signal<Problem | undefined>(undefined);

async function start(): Promise<void> {
  try {
    starting.value = undefined;
    await signInByLink();
    await readSession();
  } catch (error) {
    starting.value = problemFrom(error);
  }
}

export function App() {
  useEffect(() => void start(), []);
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <TopBar />
      <main id="content">
        {starting.value && <ProblemNote problem={starting.value} retry={() => void start()} />}
        {session.value === undefined ? !starting.value && <Loading what="the session" /> : <Content />}
      </main>
      <SignIn />
      <Help />
    </>
  );
}

/** Pages stand behind the sign-in from the first one on, and stay when a session ends. */
function Content() {
  const [entered, setEntered] = useState(false);
  const inside = session.value?.authenticated === true;
  useEffect(() => {
    if (inside) setEntered(true);
  }, [inside]);
  return inside || entered ? <CurrentPage /> : <SignedOut />;
}

function CurrentPage() {
  const { parts, path } = route.value;
  const name = parts?.[0] ?? "";
  const load = parts === undefined ? undefined : PAGES[name];
  const [loaded, setLoaded] = useState<{ name: string; page?: ComponentType<PageProps>; problem?: Problem }>();
  useEffect(() => {
    let left = false;
    load?.().then(
      (page) => !left && setLoaded({ name, page }),
      (error: unknown) => !left && setLoaded({ name, problem: problemFrom(error) }),
    );
    return () => {
      left = true;
    };
  }, [name, load]);
  if (!load) return <NoSuchPage path={path} />;
  if (loaded?.name !== name) return <Loading what="the page" />;
  if (loaded.problem) return <ProblemNote problem={loaded.problem} retry={() => location.reload()} what="This part of the console could not be loaded" />;
  const Shown = loaded.page;
  return Shown ? <Shown key={path} parts={parts?.slice(1) ?? []} /> : null;
}

function SignedOut() {
  return (
    <Page title="Signed out">
      <p>Sign in to see what this server holds.</p>
    </Page>
  );
}

export function NoSuchPage(props: { path: string }) {
  return (
    <Page title="No such page">
      <p>
        The console has no page at <code>{props.path}</code>. <a href="/console/">All CRDs</a>
      </p>
    </Page>
  );
}
