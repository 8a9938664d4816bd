/** Light or dark: as the system is set, or as was chosen here, which the browser keeps. */
import { useEffect, useState } from "preact/hooks";

export const THEMES = { system: "As the system", light: "Light", dark: "Dark" } as const;
export type Theme = keyof typeof THEMES;

const KEY = "gguf-native-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let theme: Theme = "system";

const current = () => ({ theme, isDark: theme === "system" ? system.matches : theme === "dark" });

/** @param kept what is done with what the browser keeps, which a page may be forbidden */
function apply(kept: () => unknown): void {
  try {
    kept();
  } catch {
    // Then it is chosen until the page is left.
  }
  document.documentElement.dataset.theme = current().isDark ? "dark" : "light";
  for (const listener of listeners) listener();
}

export function setTheme(next: Theme): void {
  theme = next;
  apply(() => localStorage.setItem(KEY, theme));
}

system.addEventListener("change", () => apply(() => undefined));
apply(() => {
  const name = localStorage.getItem(KEY) ?? "";
  if (Object.hasOwn(THEMES, name)) theme = name as Theme;
});

export function useTheme(): { theme: Theme; isDark: boolean } {
  const [state, setState] = useState(current);
  useEffect(() => {
    const listener = (): void => setState(current());
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return state;
}
