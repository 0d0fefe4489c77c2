/** What RBAC lets the user do. Asked once per question and kept for the life of the page. */
import { useEffect } from "preact/hooks";
import { signal, type Signal } from "@preact/signals";
import { json } from "./client";

export interface Right {
  verb: string;
  group?: string;
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

interface Answer {
  status?: { allowed?: boolean };
}

const asked = new Map<string, Signal<boolean | undefined>>();

function rightSignal(right: Right): Signal<boolean | undefined> {
  const key = JSON.stringify(right);
  let known = asked.get(key);
  if (!known) {
    known = signal<boolean | undefined>(undefined);
    asked.set(key, known);
  }
  return known;
}

async function ask(right: Right, answer: Signal<boolean | undefined>): Promise<void> {
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: { ...right, group: right.group ?? "" } },
  };
  try {
    const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    const { status } = await json<Answer>(path, { method: "POST", body });
    answer.value = status?.allowed ?? false;
  } catch {
    // A server that does not answer the question refuses the request itself, and says why.
    answer.value = true;
  }
}

/** Undefined until the server has answered: then nothing is offered yet. */
export function useRight(right: Right): boolean | undefined {
  const answer = rightSignal(right);
  useEffect(() => {
    if (answer.value === undefined) void ask(right, answer);
    // The signal stands for the right: it is the same for an equal one.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [answer]);
  return answer.value;
}
