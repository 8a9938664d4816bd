/** The whole page: opening models, tabs, what is dropped, and where one is. */
import type { Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { isNear, modelsOf, modelUrl } from "../lib/address";
import type { ModelSource } from "../lib/protocol";
import { ask, messageOf } from "./client";
import { Compare, type Slot } from "./compare";
import { Memory } from "./memory";
import { Metadata } from "./metadata";
import { Facts, Failure, Progress } from "./parts";
import { Choice } from "./pictures";
import { base, go, type Step, useAddress } from "./place";
import { Start } from "./start";
import { Summary } from "./summary";
import { Tensors } from "./tensors";
import { setTheme, THEMES, useTheme } from "./theme";
import { VocabularyTab } from "./vocabulary";

const TABS = ["Summary", "Metadata", "Vocabulary", "Tensors", "Compare", "Memory"] as const;
type Tab = (typeof TABS)[number];

const slug = (tab: Tab): string => tab.toLowerCase();

function goToTab(tab: Tab, step?: Step): void {
  go({ place: { tab: slug(tab), rest: "", view: {} } }, step);
}

/** Which of two models: the one to look at, and the one it is compared with. */
type Side = "a" | "b";

/** The models of the page: those that its URL names, and files that were chosen. */
function useModels(): Record<Side, Slot> & { choose: (sources: Partial<Record<Side, ModelSource>>) => void } {
  const { models } = useAddress();
  const [files, setFiles] = useState<Record<Side, readonly File[] | undefined>>({
    a: undefined,
    b: undefined,
  });
  const [a, b] = [useModel(models[0], files.a), useModel(models[1], files.b)];
  const choose = (sources: Partial<Record<Side, ModelSource>>): void => {
    const urlOf = (source: ModelSource | undefined, url: string): string =>
      source === undefined ? url : "url" in source ? source.url : "";
    const filesOf = (source: ModelSource | undefined) =>
      source !== undefined && "files" in source ? source.files : undefined;
    setFiles((now) => ({ a: filesOf(sources.a) ?? now.a, b: filesOf(sources.b) ?? now.b }));
    go({ models: [urlOf(sources.a, models[0]), urlOf(sources.b, models[1])] });
  };
  return { a, b, choose };
}

/** A model by its URL, or where that is empty, of files. */
function useModel(url: string, files: readonly File[] | undefined): Slot {
  const [slot, setSlot] = useState<Slot>(url === "" ? {} : { opening: FETCHING });
  const chosen = url === "" ? files : undefined;
  useEffect(() => {
    if (chosen !== undefined) return openModel({ files: chosen }, setSlot);
    if (url === "") return setSlot({});
    try {
      return openModel({ url: modelUrl(url, base) }, setSlot);
    } catch (error) {
      setSlot({ error: messageOf(error) });
    }
  }, [url, chosen]);
  return slot;
}

const FETCHING = "Fetching the header";

/** Opens a model, and says how far that is; the function it returns closes it again. */
function openModel(source: ModelSource, set: (slot: Slot) => void): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  set({ opening: "url" in source ? FETCHING : "Reading the header" });
  ask("open", source, { signal }).then(
    (model) => {
      signal.addEventListener("abort", () => void ask("close", model.id));
      set({ model });
    },
    (error: unknown) => {
      if (!signal.aborted) set({ error: messageOf(error) });
    },
  );
  return () => controller.abort();
}

/** What is typed into. */
const FIELDS = "input, select, textarea, [contenteditable]";

/**
 * Keys that work wherever one is: `/` goes to the search box, arrows to the list. Escape empties the search box that one is in,
 * and else closes what is shown beside the list; then it leaves the field. `?` says what keys there are.
 */
function useKeys(close: () => void, showHelp: () => void): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    const inPanel = (selector: string): HTMLElement | null => document.querySelector(`#panel ${selector}`);
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector("dialog[open]")) return;
      const { target, key } = event;
      const field = target instanceof Element && target.matches(FIELDS) ? (target as HTMLInputElement) : null;
      if (key === "/" && field === null) {
        const search = inPanel("input[type=search]") as HTMLInputElement | null;
        if (search === null) return;
        event.preventDefault();
        search.focus();
        search.select();
      } else if (key === "?" && field === null) {
        showHelp();
      } else if ((key === "ArrowDown" || key === "ArrowUp") && isAtList(target)) {
        const grid = inPanel("[role=grid]");
        if (grid === null) return;
        event.preventDefault();
        grid.focus({ preventScroll: true });
        grid.dispatchEvent(new KeyboardEvent("keydown", { key }));
      } else if (key === "Escape" && field?.type === "search" && field.value !== "") {
        event.preventDefault();
        field.value = "";
        field.dispatchEvent(new Event("input", { bubbles: true }));
      } else if (key === "Escape") {
        if (inPanel(".split-detail") !== null) latest.current();
        else field?.blur();
      }
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

/** Whether arrows have nothing else to do: in no field, or in the search box over the list. */
function isAtList(target: EventTarget | null): boolean {
  return target === document.body || (target instanceof Element && target.matches("input[type=search]"));
}

/** Whether files are held over the page; those that are dropped go to `onDrop`. */
function useDrop(onDrop: (files: readonly File[]) => void): boolean {
  const [isOver, setIsOver] = useState(false);
  const latest = useRef(onDrop);
  latest.current = onDrop;
  useEffect(() => {
    const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setIsOver(true);
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setIsOver(false);
    };
    const drop = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setIsOver(false);
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length > 0) latest.current(files);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
  return isOver;
}

export function App() {
  const { a, b, choose } = useModels();
  const { models, place } = useAddress();
  const { model } = a;
  const known = TABS.find((name) => slug(name) === place.tab);
  const tab = known ?? (models[1] === "" ? "Summary" : "Compare");
  useEffect(() => {
    if (model !== undefined && known === undefined) goToTab(tab, "replace");
  }, [model, known, tab]);
  const show = (rest: string): void => go({ place: { ...place, rest } });
  const help = useRef<HTMLDialogElement>(null);
  useKeys(
    () => show(""),
    () => help.current?.showModal(),
  );
  /** Two files of two models are compared. */
  const chooseFiles = (all: readonly File[]): void => {
    const [files, others] = modelsOf(all);
    choose({ a: { files }, ...(others.length > 0 && { b: { files: others } }) });
    if (others.length > 0) goToTab("Compare");
  };
  const areNear = (): boolean => b.error === undefined && models.every((url) => isNear(url, base));
  const isOver = useDrop((files) =>
    tab === "Compare" && model !== undefined ? choose({ b: { files } }) : chooseFiles(files),
  );
  useEffect(() => {
    const names = [model?.name, b.model?.name].filter(Boolean).join(" and ");
    document.title = model === undefined ? "gguf-native view" : `${names} - gguf-native view`;
  }, [model, b.model]);
  return (
    <>
      <header>
        <div class="top">
          <span class="brand" translate={false}>
            gguf<b>-native</b>
          </span>
          {model === undefined ? (
            <div class="names" />
          ) : (
            <>
              <div class="names">
                <h1 class="name" data-testid="model-name">
                  {model.name}
                </h1>
                {b.model === undefined ? null : (
                  <p class="versus">
                    <span class="note">and</span>{" "}
                    <span class="name" data-testid="other-name">
                      {b.model.name}
                    </span>
                  </p>
                )}
              </div>
              <label class="quiet button" for="another">
                Open another
              </label>
              <input
                class="file"
                id="another"
                type="file"
                multiple
                onChange={(event) => {
                  const files = [...(event.currentTarget.files ?? [])];
                  event.currentTarget.value = "";
                  if (files.length > 0) chooseFiles(files);
                }}
              />
            </>
          )}
          <button type="button" class="quiet" aria-label="Keys and theme" onClick={() => help.current?.showModal()}>
            ?
          </button>
        </div>
        {model === undefined ? null : <Tabs tab={tab} onTab={goToTab} />}
      </header>
      <main class={model === undefined ? "is-start" : ""}>
        {a.opening === undefined ? null : <Progress label={a.opening} />}
        {a.error === undefined ? null : <Failure message={a.error} />}
        {model?.warning === undefined ? null : <Failure message={model.warning} />}
        {model === undefined ? (
          a.opening === undefined ? (
            <Start onChoose={(source) => ("files" in source ? chooseFiles(source.files) : choose({ a: source }))} />
          ) : null
        ) : (
          <div class="panel" role="tabpanel" id="panel" aria-labelledby={`tab-${slug(tab)}`} key={model.id}>
            {tab === "Summary" ? <Summary model={model} other={b.model} isNear={areNear()} /> : null}
            {tab === "Metadata" ? <Metadata model={model} name={place.rest} onOpen={show} /> : null}
            {tab === "Vocabulary" ? <VocabularyTab model={model} /> : null}
            {tab === "Tensors" ? <Tensors model={model} name={place.rest} onOpen={show} /> : null}
            {tab === "Compare" ? (
              <Compare a={model} b={b} isNear={areNear()} onChoose={(source) => choose({ b: source })} />
            ) : null}
            {tab === "Memory" ? <Memory model={model} /> : null}
          </div>
        )}
      </main>
      <Help dialog={help} />
      {isOver ? (
        <div class="drop" aria-hidden="true">
          Drop it anywhere
        </div>
      ) : null}
    </>
  );
}

const KEYS: [string, string][] = [
  ["/", "to the search box"],
  ["arrows", "through the list, or from cell to cell of the model"],
  ["Enter", "opens what is marked"],
  ["Escape", "empties the search box, closes what is open"],
  ["+ - 0", "on a heatmap: closer, farther, the whole"],
  ["?", "shows this"],
];

/** The keys, and the switch of the theme. */
function Help({ dialog }: { dialog: Ref<HTMLDialogElement> }) {
  const { theme } = useTheme();
  return (
    <dialog ref={dialog} aria-label="Keys and theme">
      <Choice label="Theme" value={theme} options={THEMES} onChange={setTheme} />
      <Facts facts={KEYS} />
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

function Tabs({ tab, onTab }: { tab: Tab; onTab: (tab: Tab) => void }) {
  const box = useRef<HTMLDivElement>(null);
  // On a phone not all are in sight.
  useEffect(() => {
    box.current?.children[TABS.indexOf(tab)]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [tab]);
  const onKeyDown = (event: KeyboardEvent): void => {
    // Keys may come faster than what they show.
    const at = [...(box.current?.children ?? [])].indexOf(event.target as Element);
    const targets: Record<string, number> = {
      ArrowRight: (at + 1) % TABS.length,
      ArrowLeft: (at + TABS.length - 1) % TABS.length,
      Home: 0,
      End: TABS.length - 1,
    };
    const next = targets[event.key];
    if (next === undefined) return;
    event.preventDefault();
    onTab(TABS[next] as Tab);
    (box.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views" ref={box} onKeyDown={onKeyDown}>
      {TABS.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${slug(name)}`}
          aria-selected={name === tab}
          aria-controls="panel"
          data-text={name}
          tabIndex={name === tab ? 0 : -1}
          onClick={() => onTab(name)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
