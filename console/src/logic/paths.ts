/** Addresses: of the console's pages, and of the API behind them. */

const BASE = "/console";

export interface CrdNames {
  group: string;
  plural: string;
}

export function pagePath(...parts: string[]): string {
  return [BASE, ...parts.map(encodeURIComponent)].join("/");
}

/** The parts of a page's path; undefined when it is none of ours, or no path at all. */
export function pageParts(pathname: string): string[] | undefined {
  if (pathname !== BASE && !pathname.startsWith(`${BASE}/`)) return undefined;
  try {
    return pathname.slice(BASE.length).split("/").filter((part) => part !== "").map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

export function withQuery(path: string, query: Record<string, string | number | undefined>): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== "") search.set(key, String(value));
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

export const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export function crdPath(name: string): string {
  return `${CRDS}/${encodeURIComponent(name)}`;
}

export function collectionPath(crd: CrdNames, version: string, namespace = ""): string {
  const base = `/apis/${encodeURIComponent(crd.group)}/${encodeURIComponent(version)}`;
  const inside = namespace === "" ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${base}${inside}/${encodeURIComponent(crd.plural)}`;
}

export function objectPath(crd: CrdNames, version: string, namespace: string, name: string): string {
  return `${collectionPath(crd, version, namespace)}/${encodeURIComponent(name)}`;
}

/** `widgets.example.com` is the plural and the group. */
export function namesOf(crdName: string): CrdNames {
  const dot = crdName.indexOf(".");
  return { plural: crdName.slice(0, dot), group: crdName.slice(dot + 1) };
}
