/** The whole page: opening models, tabs, what is dropped, and where one is. */
import { useEffect, useRef, useState } from "preact/hooks";
import { hashOf, modelsOf, modelUrl, namedModels, type Place, placeOf } from "../lib/address";
import type { ModelSource, ModelView } from "../lib/protocol";
import { ask, messageOf } from "./client";
import { Compare } from "./compare";
import { Memory } from "./memory";
import { Metadata } from "./metadata";
import { Failure, Progress } from "./parts";
import { Start } from "./start";
import { Summary } from "./summary";
import { Tensors } from "./tensors";
import { VocabularyTab } from "./vocabulary";

const TABS = ["Summary", "Metadata", "Vocabulary", "Tensors", "Compare", "Memory"] as const;
type Tab = (typeof TABS)[number];

const slug = (tab: Tab): string => tab.toLowerCase();

/** Which of two models: the one to look at, and the one it is compared with. */
type Side = "a" | "b";

/** A model of a side: there is none yet, it is being opened, it is open, or it could not be. */
interface Slot {
  readonly model?: ModelView;
  readonly opening?: string;
  readonly error?: string;
}

/** The models of the page, and how another one is opened. */
function useModels(): Record<Side, Slot> & { choose: (side: Side, source: ModelSource) => void } {
  const [slots, setSlots] = useState<Record<Side, Slot>>({ a: {}, b: {} });
  const opening = useRef<Partial<Record<Side, AbortController>>>({});
  const open = useRef<Partial<Record<Side, number>>>({});
  const choose = (side: Side, source: ModelSource): void => {
    opening.current[side]?.abort();
    const controller = new AbortController();
    opening.current[side] = controller;
    const set = (slot: Slot): void => {
      if (!controller.signal.aborted) setSlots((now) => ({ ...now, [side]: slot }));
    };
    const last = open.current[side];
    if (last !== undefined) void ask("close", last);
    delete open.current[side];
    set({ opening: "url" in source ? "Fetching the header" : "Reading the header" });
    ask("open", source, { signal: controller.signal }).then(
      (model) => {
        open.current[side] = model.id;
        set({ model });
      },
      (error: unknown) => set({ error: messageOf(error) }),
    );
  };
  // What the URL of the page names.
  useEffect(() => {
    const sides: readonly Side[] = ["a", "b"];
    for (const [i, text] of namedModels(location.search).entries()) {
      const side = sides[i] as Side;
      try {
        choose(side, { url: modelUrl(text, location.href) });
      } catch (error) {
        setSlots((now) => ({ ...now, [side]: { error: messageOf(error) } }));
      }
    }
  }, []);
  return { ...slots, choose };
}

/** Where one is, as the fragment of the URL says, so that going back works. */
function usePlace(): [Place, (place: Place) => void] {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const onChange = (): void => setPlace(placeOf(location.hash));
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return [
    place,
    (next) => {
      location.hash = hashOf(next);
      setPlace(next);
    },
  ];
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
  const [place, setPlace] = usePlace();
  const tab = TABS.find((name) => slug(name) === place.tab) ?? "Summary";
  const { model } = a;
  /** Two files of two models are compared. */
  const chooseFiles = (all: readonly File[]): void => {
    const [files, others] = modelsOf(all);
    choose("a", { files });
    if (others.length > 0) choose("b", { files: others });
  };
  const isOver = useDrop((files) =>
    tab === "Compare" && model !== undefined ? choose("b", { files }) : chooseFiles(files),
  );
  useEffect(() => {
    document.title = model === undefined ? "gguf-native view" : `${model.name} - gguf-native view`;
  }, [model]);
  return (
    <>
      <header>
        <div class="top">
          <span class="brand" translate={false}>
            gguf<b>-native</b>
          </span>
          {model === undefined ? null : (
            <>
              <h1 class="name" data-testid="model-name">
                {model.name}
              </h1>
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
        </div>
        {model === undefined ? null : (
          <Tabs tab={tab} onTab={(next) => setPlace({ tab: slug(next), rest: "" })} />
        )}
      </header>
      <main class={model === undefined ? "is-start" : ""}>
        {a.opening === undefined ? null : <Progress label={a.opening} />}
        {a.error === undefined ? null : <Failure message={a.error} />}
        {model?.warning === undefined ? null : <Failure message={model.warning} />}
        {model === undefined ? (
          a.opening === undefined ? (
            <Start
              onChoose={(source) => ("files" in source ? chooseFiles(source.files) : choose("a", source))}
            />
          ) : null
        ) : (
          <div class="panel" role="tabpanel" id="panel" aria-labelledby={`tab-${slug(tab)}`} key={model.id}>
            {tab === "Summary" ? <Summary model={model} /> : null}
            {tab === "Metadata" ? <Metadata model={model} /> : null}
            {tab === "Vocabulary" ? <VocabularyTab model={model} /> : null}
            {tab === "Tensors" ? (
              <Tensors
                model={model}
                name={place.rest}
                onOpen={(name) => setPlace({ tab: "tensors", rest: name })}
              />
            ) : null}
            {tab === "Compare" ? (
              <Compare a={model} b={b} onChoose={(source) => choose("b", source)} />
            ) : null}
            {tab === "Memory" ? <Memory model={model} /> : null}
          </div>
        )}
      </main>
      {isOver ? (
        <div class="drop" aria-hidden="true">
          Drop it anywhere
        </div>
      ) : null}
    </>
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
          tabIndex={name === tab ? 0 : -1}
          onClick={() => onTab(name)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
