/** A page that computes vectors of texts with the model that it is handed, in base64, and posts their bits. */
import { cpu, parse } from "gguf-native/wasm";
import { embedTexts } from "./embeddings-run";

/** What is used of browsers, whose types come with theirs. */
declare function atob(base64: string): string;

async function main(): Promise<void> {
  const model = (await (await fetch("/input")).json()) as string;
  const file = parse(Uint8Array.from(atob(model), (character) => character.charCodeAt(0)));
  const result = { isa: cpu().isa, runs: await embedTexts(file, [1]) };
  await fetch("/result", { method: "POST", body: JSON.stringify(result) });
}

void main();
