/** The worker: opens a model and a text, and finds the passages of the text that are most similar to a query. */
import { Embedder } from "gguf-native/embeddings";
import { Index, passagesOf } from "../search";

/** Passages that are shown. */
const SHOWN = 10;

/** @param scope the worker's global object */
export function startWorker(scope) {
  /** Those that were opened last, and the index of both once it is built. */
  let embedder;
  let passages;
  let index;
  /** A newer file ends the building of an index. */
  let building = new AbortController();

  const say = (status, found) => scope.postMessage({ status, found, ready: index !== undefined });

  async function openModel(file) {
    say(`Opening ${file.name} …`);
    embedder?.close();
    embedder = undefined;
    embedder = await Embedder.open(file);
    if (passages === undefined) say(`${file.name} is open. No text yet.`);
  }

  async function openText(file) {
    passages = passagesOf(await file.text());
    if (embedder === undefined) say(`${file.name} has ${passages.length} passages. No model yet.`);
  }

  async function build(signal) {
    const made = new Index(embedder, passages);
    const start = performance.now();
    const onProgress = (count) => say(`${count} of ${passages.length} passages are read.`);
    await made.build("", { signal, onProgress });
    index = made;
    say(`${passages.length} passages were read in ${((performance.now() - start) / 1000).toFixed(1)} s.`);
  }

  async function search(query) {
    const start = performance.now();
    const found = await index.search(query, SHOWN);
    say(`Searched ${passages.length} passages in ${(performance.now() - start).toFixed(0)} ms.`, found);
  }

  scope.onmessage = async ({ data }) => {
    try {
      if (data.query !== undefined) {
        await search(data.query);
        return;
      }
      index = undefined;
      building.abort();
      building = new AbortController();
      const { signal } = building;
      if (data.model) await openModel(data.model);
      else await openText(data.text);
      if (embedder !== undefined && passages !== undefined && !signal.aborted) await build(signal);
    } catch (error) {
      if (error.name !== "AbortError") say(`Error: ${error.message}`);
    }
  };
}
