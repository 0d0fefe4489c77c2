/** Light or dark: as the system says, until somebody chooses. The choice is no secret and is kept. */
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const NAME = "instar-theme";
const ORDER: Theme[] = ["system", "light", "dark"];

function stored(): Theme {
  try {
    const found = localStorage.getItem(NAME);
    return ORDER.find((theme) => theme === found) ?? "system";
  } catch {
    return "system";
  }
}

export const theme = signal<Theme>(stored());

export function nextTheme(): void {
  theme.value = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] ?? "system";
}

export function startTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    try {
      localStorage.setItem(NAME, theme.value);
    } catch {
      // A browser that keeps nothing still has both themes.
    }
  });
}
