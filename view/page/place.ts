/**
 * Where one is: the models, the tab, what of it is shown and how, all of it in the address of the page. So every state is a
 * link, and the browser's button back leads to the last place. Going somewhere is a step that it can take back; typing is not.
 */
import { useEffect, useState } from "preact/hooks";
import { hashOf, type ModelUrls, modelUrlsOf, type Place, placeOf, searchOf } from "../lib/address";
import { server } from "./server";

/** What the address of the page says. */
export interface Address {
  readonly models: ModelUrls;
  readonly place: Place;
}

/** Whether the button back leads to where one was before. */
export type Step = "push" | "replace";

/** Addresses that are replaced wait this long for another one: browsers limit how many there are in a second. */
const SETTLE_MS = 150;

/** What relative URLs of models count from: the server's page, whose place the address does not say, or this one. */
export const base = (server ?? location).href;

let current = addressInBar();
const listeners = new Set<() => void>();
let settling: ReturnType<typeof setTimeout> | undefined;

function addressInBar(): Address {
  return { models: modelUrlsOf(location.search), place: placeOf(location.hash) };
}

const textOf = ({ models, place }: Address): string => searchOf(models) + hashOf(place);

function write(step: Step): void {
  clearTimeout(settling);
  settling = undefined;
  const url = new URL(location.href);
  url.search = searchOf(current.models);
  url.hash = hashOf(current.place);
  try {
    history[`${step}State`](null, "", url);
  } catch {
    // Too many in a short time, or a page that may have no other address. What is shown does not depend on it.
  }
}

function set(next: Address): void {
  current = next;
  for (const listener of listeners) listener();
}

// The browser has gone back or forward, or somebody has changed the fragment.
addEventListener("popstate", () => {
  clearTimeout(settling);
  settling = undefined;
  set(addressInBar());
});
addEventListener("pagehide", () => {
  if (settling !== undefined) write("replace");
});

/** Goes somewhere else; to where one is already, nothing happens. */
export function go(to: Partial<Address>, step: Step = "push"): void {
  const next = { ...current, ...to };
  if (textOf(next) === textOf(current)) return;
  if (step === "push") {
    if (settling !== undefined) write("replace");
    set(next);
    write("push");
  } else {
    set(next);
    clearTimeout(settling);
    settling = setTimeout(() => write("replace"), SETTLE_MS);
  }
}

export function useAddress(): Address {
  const [address, setAddress] = useState(current);
  useEffect(() => {
    const listener = (): void => setAddress(current);
    listeners.add(listener);
    listener(); // it may have changed since
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return address;
}

/** How a tab is shown, by a name that the address has where it is not `usual`. A change is no step, unless it is said to be. */
export function useView(name: string, usual = ""): [string, (value: string, step?: Step) => void] {
  const { view } = useAddress().place;
  return [
    view[name] ?? usual,
    (value, step = "replace") => {
      const { [name]: _, ...others } = current.place.view;
      const next = value === usual ? others : { ...others, [name]: value };
      go({ place: { ...current.place, view: next } }, step);
    },
  ];
}
