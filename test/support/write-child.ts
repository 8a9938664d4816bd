/**
 * Changes a model in a process of its own, which kills itself at a given call of the file system: before the call, or
 * once it is under way. Prints how many such calls there were if it lives.
 */
import fs from "node:fs/promises";
import { convertModel, GgufWriter, mergeModel, openSync, quantizeModel, setMetadata, splitModel } from "gguf-native";

/** What the process is asked for: its one argument, as JSON. */
export interface WriteTask {
  work: "set" | "set one number" | "set in place" | "split" | "merge" | "quantize" | "rename" | "convert" | "split new";
  /** The model, or the checkpoint that is converted. */
  path: string;
  output: string;
  /** What to set `general.description` to. */
  text: string;
  /** The call to die at, from 1 on, or the first or second one that changes a file of the model; 0 for none. */
  killAt: number | "first change" | "second change";
  during: boolean;
}

const task = JSON.parse(process.argv[2] ?? "{}") as WriteTask;
let calls = 0;
let changes = 0;

// biome-ignore lint/suspicious/noExplicitAny: functions of any arguments
type Owner = Record<string, (...args: any[]) => unknown>;

function countCalls(owner: object, names: readonly string[]): void {
  for (const name of names) {
    const original = (owner as Owner)[name] as Owner[string];
    (owner as Owner)[name] = function (this: unknown, ...args: unknown[]) {
      // Only a file that has its name already is written to at a position.
      const isChange =
        (name === "write" && typeof args[3] === "number") || (name === "rename" && /gguf$/.test(String(args[1])));
      if (isChange) changes++;
      const killedChange = task.killAt === "first change" ? 1 : task.killAt === "second change" ? 2 : 0;
      const isLast = ++calls === task.killAt || (isChange && changes === killedChange);
      if (isLast && !task.during) process.kill(process.pid, "SIGKILL");
      const result = original.apply(this, args);
      if (isLast) process.kill(process.pid, "SIGKILL");
      return result;
    };
  }
}

async function renamed(path: string, output: string): Promise<void> {
  using file = openSync(path);
  await GgufWriter.from(file).renameTensors({ "t0.weight": "first.weight" }).write(output);
}

async function main(): Promise<void> {
  const handle = await fs.open(__filename);
  countCalls(Object.getPrototypeOf(handle), ["write", "sync", "chmod"]);
  await handle.close();
  countCalls(fs, ["rename", "link", "rm"]);
  const { work, path, output, text } = task;
  process.stdout.write("started\n");
  const newText = { "general.description": text };
  if (work === "set one number") await setMetadata(path, { "test.block_count": 2 });
  else if (work === "set") await setMetadata(path, newText);
  else if (work === "set in place") await setMetadata(path, newText, { inPlace: true });
  else if (work === "split") await splitModel(path, output, { maxTensors: 4 });
  else if (work === "split new") await splitModel(path, output, { maxTensors: 4, overwrite: false });
  else if (work === "quantize") await quantizeModel(path, output, { type: "Q4_0" });
  else if (work === "rename") await renamed(path, output);
  else if (work === "convert") await convertModel(path, output, { type: "q8_0" });
  else await mergeModel(path, output);
  process.stdout.write(`${calls}\n`);
}

main();
