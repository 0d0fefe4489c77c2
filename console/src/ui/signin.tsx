/** Signing in, over whatever page is shown: it stays as it is and goes on afterwards. */
import { useState } from "preact/hooks";
import { session, signIn, signInNeeded } from "../api/session";
import { type Problem, problemFrom } from "../api/problem";
import { ProblemNote } from "./bits";
import { Dialog } from "./dialog";
import { route } from "./router";

const WHY: Record<string, string> = {
  SessionExpired: "Your session has expired. Sign in again; the page stays as it is.",
  CredentialRefused: "The server no longer accepts this credential. Sign in again; the page stays as it is.",
};

export function SignIn() {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const known = session.value;
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const typed = new FormData(form).get("token");
    const token = typeof typed === "string" ? typed.trim() : "";
    setBusy(true);
    try {
      await signIn(token);
      setProblem(undefined);
    } catch (error) {
      setProblem(problemFrom(error));
    } finally {
      form.reset();
      setBusy(false);
    }
  };
  const why = known?.authenticated ? WHY.SessionExpired : WHY[known?.why ?? ""];
  const oidc = known?.login.oidc;
  const { query, fragment, path } = route.value;
  const failed = query.get("signin") === "failed" ? new URLSearchParams(fragment).get("why") : null;
  return (
    <Dialog open={signInNeeded.value && known !== undefined} label="sign in">
      <h2>Sign in</h2>
      {why && <p>{why}</p>}
      {failed && <p class="problem" role="alert">{failed}</p>}
      {problem && <ProblemNote problem={problem} what="That did not work" />}
      {known?.login.link && !known.login.token ? (
        <p>
          Open the address that <code>instar console</code> printed; it works once. Start the command again for a new one.
        </p>
      ) : (
        <form onSubmit={(event) => void submit(event)}>
          <label>
            Token
            <input name="token" type="password" required autocomplete="off" spellcheck={false} />
          </label>
          <p class="hint">
            For example <code>kubectl create token NAME</code>. It is kept in a cookie that scripts cannot read, until you sign out.
          </p>
          <button type="submit" class="main" disabled={busy}>
            {busy ? "Signing in …" : "Sign in"}
          </button>
        </form>
      )}
      {oidc && (
        <p>
          <a class="button" href={`${oidc.start}?next=${encodeURIComponent(path)}`} target="_self">
            Sign in at {oidc.issuer}
          </a>
        </p>
      )}
      {known?.login.certificate && <p class="hint">A client certificate in your browser signs you in by itself: load the page anew after you have added it.</p>}
    </Dialog>
  );
}
