/** What test/tokenizer/browser.test.ts runs in a browser: `gguf-native/tokenizer` with vocabularies of files. */
import { Tokenizer } from "gguf-native/tokenizer";
import { parse } from "gguf-native/wasm";
import { type TokenizerInput, tokenizerFacts } from "./tokenizer-facts";

async function main(): Promise<void> {
  const { urls, texts } = (await (await fetch("/input")).json()) as TokenizerInput;
  const facts = [];
  for (const url of urls) {
    const { metadata } = parse(new Uint8Array(await (await fetch(url)).arrayBuffer()));
    facts.push(tokenizerFacts(new Tokenizer(metadata), texts));
  }
  const globals = ["process", "Buffer", "require", "global"].filter((name) => name in globalThis);
  await fetch("/result", { method: "POST", body: JSON.stringify({ globals, facts }) });
}

main();
