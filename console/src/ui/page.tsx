/** The frame of a page: its title, the way to it, and its JSON twins. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { route } from "./router";

export interface Twin {
  text: string;
  href: string;
}

export function Page(props: {
  title: string;
  heading?: ComponentChildren;
  crumbs?: { text: string; href: string }[];
  twins?: Twin[];
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  const path = route.value.path;
  useEffect(() => {
    document.title = `${props.title} · instar`;
  }, [props.title]);
  useEffect(() => {
    // Who moved by keyboard or a screen reader starts at the top of the new page.
    if (document.activeElement === null || document.activeElement === document.body || document.activeElement.closest("main") === null)
      heading.current?.focus({ preventScroll: true });
  }, [path]);
  return (
    <>
      <header class="page-head">
        {props.crumbs && (
          <nav aria-label="where this is" class="crumbs">
            {props.crumbs.map((crumb) => (
              <a key={crumb.href} href={crumb.href}>
                {crumb.text}
              </a>
            ))}
          </nav>
        )}
        <div class="title-line">
          <h1 tabIndex={-1} ref={heading}>
            {props.heading ?? props.title}
          </h1>
          {props.actions && <div class="actions">{props.actions}</div>}
        </div>
      </header>
      {props.children}
      {props.twins && <Twins twins={props.twins} />}
    </>
  );
}

function Twins(props: { twins: Twin[] }) {
  return (
    <footer class="twins">
      <span>This page as JSON:</span>
      <ul>
        {props.twins.map((twin) => (
          <li key={twin.href}>
            <a href={twin.href} target="_blank" rel="noreferrer" title={twin.href}>
              {twin.text}
            </a>
          </li>
        ))}
      </ul>
    </footer>
  );
}

export function Tabs<T extends string>(props: { label: string; current: T; tabs: readonly { id: T; text: string }[]; href: (id: T) => string }) {
  return (
    <nav class="tabs" aria-label={props.label}>
      {props.tabs.map((tab) => (
        <a key={tab.id} href={props.href(tab.id)} aria-current={tab.id === props.current ? "page" : undefined}>
          {tab.text}
        </a>
      ))}
    </nav>
  );
}
