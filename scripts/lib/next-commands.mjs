// What the demo ends with.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.mjs";

/** Commands to try with a model, as their arguments, and what each is for; `tensor` is the name of one of its tensors. */
export function nextCommands(model, tensor) {
  const smaller = "build/demo/small.gguf";
  return [
    [["tokens", model, "Hello world"], "the tokens of a text"],
    [["stats", model, tensor], "a histogram of weights"],
    [["quantize", model, smaller, "--type", "Q4_K_M", "--allow-requantize", "--force"], "a smaller model"],
    [["diff", model, smaller], "in what the two differ"],
    ...(existsSync(join(root, "dist", "view", "index.html")) ? [[["view", model], "a page that shows it"]] : []),
    [["--help"], "all commands"],
  ];
}

/** The command as it is pasted into a shell. */
export const commandText = (args) => ["npx", "gguf-native", ...args].map(quoted).join(" ");

const quoted = (arg) => (/^[\w./:=-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`);
