/** A thread of run-tasks.ts: prepares itself once, then answers every message, a task, with its result. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { type Answer, mappedWork, type ThreadSetup } from "./mapped-work";
import type { Task } from "./pieces";

const port = parentPort as MessagePort;
const work = mappedWork(workerData as ThreadSetup);

async function answer(task: Task): Promise<Answer> {
  try {
    return { result: await work(task) };
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    return { error: { message, code } };
  }
}

port.on("message", async (task: Task) => port.postMessage(await answer(task)));
