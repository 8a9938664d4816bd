/**
 * Receipts: with what a text was written, and a hash of the logits that each token was chosen from. Their bits are the same on
 * every machine, so that whoever has the model can check one.
 */
import type { Written } from "./write";

export interface Receipt {
  /** The version of gguf-native. */
  version: string;
  /** SHA-256 of the files of the model, and of its adapters. */
  model: string[];
  adapters: { sha256: string; scale: number }[];
  activations: "int8" | "f32";
  prompt: string;
  /** How many tokens were wanted. Each is one of the `topK` most probable ones. */
  count: number;
  topK: number;
  seed: number;
  tokens: { token: number; sha256: string }[];
}

/** One without tokens, and without the model. */
export function newReceipt(settings: Pick<Receipt, "activations" | "prompt" | "count" | "topK" | "seed">): Receipt {
  const { version } = require("gguf-native/package.json") as { version: string };
  const { activations, prompt, count, topK, seed } = settings;
  return { version, model: [], adapters: [], activations, prompt, count, topK, seed, tokens: [] };
}

/** @throws Error for the text of a file that is no receipt */
export function parseReceipt(text: string, file: string): Receipt {
  const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
  const isHash = (value: unknown): boolean => typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
  try {
    const receipt = JSON.parse(text) as Receipt;
    const { version, model, adapters, activations, prompt, count, topK, seed, tokens } = receipt;
    const isReceipt =
      [...model, ...[...adapters, ...tokens].map(({ sha256 }) => sha256)].every(isHash) &&
      [count, topK - 1, seed, ...tokens.map(({ token }) => token)].every(isCount) &&
      adapters.every(({ scale }) => typeof scale === "number") &&
      ["int8", "f32"].includes(activations) &&
      [version, prompt].every((value) => typeof value === "string");
    if (isReceipt) return receipt;
  } catch {} // what is not there
  throw new Error(`${file} is not a receipt`);
}

export async function sha256(bytes: ArrayBuffer | ArrayBufferView<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

type Proof = Receipt["tokens"][number] | undefined;

/**
 * Passes on what is written, and adds it to `receipt`.
 *
 * @throws Error if the model is another one than in `expected`, or at the first token that differs
 */
export async function* record(
  written: Iterable<Written>,
  receipt: Receipt,
  expected = receipt,
): AsyncGenerator<Written, void> {
  for (const [key, which] of [
    ["model", "another model"],
    ["adapters", "other adapters"],
  ] as const) {
    const [there, here] = [expected, receipt].map((each) => JSON.stringify(each[key]));
    if (there !== here) throw new Error(`the receipt is of ${which}: ${there}, here ${here}`);
  }
  const say = (proof: Proof): string => (proof ? `${proof.token} of logits ${proof.sha256}` : "the end");
  const expectSame = (here: Proof): void => {
    const at = receipt.tokens.length;
    const [there, found] = [say(expected.tokens[at]), say(here)];
    if (expected !== receipt && there !== found)
      throw new Error(`token ${at + 1} differs: in the receipt ${there}, here ${found}`);
  };
  for (const each of written) {
    const proof = { token: each.token, sha256: await sha256(each.logits) };
    expectSame(proof);
    receipt.tokens.push(proof);
    yield each;
  }
  expectSame(undefined);
}
