/** Light or dark: as the system is set, or as was chosen here, which the browser keeps. */
import { useEffect, useState } from "preact/hooks";

export const THEMES = { system: "As the system", light: "Light", dark: "Dark" } as const;
export type Theme = keyof typeof THEMES;

const KEY = "gguf-native-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let chosen = kept();

/** A page from a disk may have nothing that is kept. */
function kept(): Theme {
  try {
    const theme = localStorage.getItem(KEY) ?? "";
    return Object.hasOwn(THEMES, theme) ? (theme as Theme) : "system";
  } catch {
    return "system";
  }
}

const isDark = (): boolean => (chosen === "system" ? system.matches : chosen === "dark");

function apply(): void {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  for (const listener of listeners) listener();
}

system.addEventListener("change", apply);
apply();

export function setTheme(theme: Theme): void {
  chosen = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Then it is chosen until the page is left.
  }
  apply();
}

export function useTheme(): { theme: Theme; isDark: boolean } {
  const [theme, set] = useState({ theme: chosen, isDark: isDark() });
  useEffect(() => {
    const listener = (): void => set({ theme: chosen, isDark: isDark() });
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return theme;
}
