/** Whether the screen is too narrow for columns beside each other; the limit is that of the style sheets. */
import { useEffect, useState } from "preact/hooks";

const NARROW = "(width < 38rem)";

export function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const follow = () => setNarrow(query.matches);
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  return narrow;
}
