/** A thread of spread.ts: prepares itself once, then answers every message, a task, with its result. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { Answer, WorkModule } from "./spread";

const { name, setup } = workerData as { name: string; setup: unknown };
const port = parentPort as MessagePort;

async function main(): Promise<void> {
  const module = (await import(`./${name}.js`)) as WorkModule<unknown, unknown>;
  const work = module.prepare(setup);
  port.on("message", (task: unknown) => port.postMessage(answer(work, task)));
}

function answer(work: (task: unknown) => unknown, task: unknown): Answer<unknown> {
  try {
    return { result: work(task) };
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    return { error: { message, code } };
  }
}

void main();
