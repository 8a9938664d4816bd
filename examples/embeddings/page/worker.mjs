/** The worker: opens a model and a text, and finds the passages of the text that are most similar to a query. */
import { parse } from "gguf-native";
import { pause } from "../../browser/files.mjs";
import { Embedder } from "../embedder";
import { Index, passagesOf } from "../search";

/** Passages that are shown. */
const SHOWN = 10;

/** @param scope the worker's global object */
export function startWorker(scope) {
  /** Those that were opened last, and the index of both once it is built. */
  let embedder;
  let passages;
  let index;
  /** Counts what was asked for: a newer file ends the building of an index. */
  let turn = 0;

  const say = (status, found) => scope.postMessage({ status, found, ready: index !== undefined });

  async function openModel(file) {
    say(`Opening ${file.name} …`);
    // In memory, where products need not wait for reads.
    embedder = new Embedder(parse(new Uint8Array(await file.arrayBuffer())));
    if (passages === undefined) say(`${file.name} is open. No text yet.`);
  }

  async function openText(file) {
    passages = passagesOf(await file.text());
    if (embedder === undefined) say(`${file.name} has ${passages.length} passages. No model yet.`);
  }

  async function build(mine) {
    const made = new Index(embedder, passages);
    const start = performance.now();
    for (const count of made.build()) {
      say(`${count} of ${passages.length} passages are read.`);
      await pause();
      if (mine !== turn) return;
    }
    index = made;
    say(`${passages.length} passages were read in ${((performance.now() - start) / 1000).toFixed(1)} s.`);
  }

  function search(query) {
    const start = performance.now();
    const found = index.search(query, SHOWN);
    say(`Searched ${passages.length} passages in ${(performance.now() - start).toFixed(0)} ms.`, found);
  }

  scope.onmessage = async ({ data }) => {
    try {
      if (data.query !== undefined) {
        search(data.query);
        return;
      }
      index = undefined;
      turn++;
      const mine = turn;
      if (data.model) await openModel(data.model);
      else await openText(data.text);
      if (embedder !== undefined && passages !== undefined && mine === turn) await build(mine);
    } catch (error) {
      say(`Error: ${error.message}`);
    }
  };
}
