/** Light or dark: as the system is set, or as was chosen here, which the browser keeps. */
import { useEffect, useState } from "preact/hooks";

export const THEMES = { system: "As the system", light: "Light", dark: "Dark" } as const;
export type Theme = keyof typeof THEMES;

const KEY = "gguf-native-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let theme: Theme = "system";

const current = () => ({ theme, isDark: theme === "system" ? system.matches : theme === "dark" });

export function setTheme(next: string | null): void {
  theme = next !== null && Object.hasOwn(THEMES, next) ? (next as Theme) : "system";
  document.documentElement.dataset.theme = current().isDark ? "dark" : "light";
  for (const listener of listeners) listener();
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A page may have nothing that is kept.
  }
}

system.addEventListener("change", () => setTheme(theme));
try {
  setTheme(localStorage.getItem(KEY));
} catch {
  setTheme(null);
}

export function useTheme(): { theme: Theme; isDark: boolean } {
  const [state, setState] = useState(current);
  useEffect(() => {
    const listener = (): void => setState(current());
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return state;
}
