/**
 * Runs work on tensors that the addon's own threads cannot do, because it is JavaScript that looks at every weight. For
 * models on this machine it is spread over all cores; each thread maps them for itself. Where a model is on a server,
 * several pieces are fetched at a time, and looked at in this thread, which is faster than most networks.
 */
import { Worker } from "node:worker_threads";
import { cpu, type GgufFile } from "../../index";
import { forEachConcurrently } from "../../source/concurrent";
import type { OpenedModel } from "../arguments/open-model";
import type { Progress } from "../output/progress";
import type { Terminal } from "../output/terminal";
import { fetchedPieces } from "./fetched-pieces";
import { prepareWork, type WorkKind, type WorkResult, type WorkSetup } from "./kinds";
import { type Answer, type ThreadSetup, workOn } from "./mapped-work";
import type { Task, Work } from "./pieces";

/** Less work than so many bytes is done in this thread: starting others would take longer. */
const WORTH_THREADS = 2 ** 26;

/** How many tasks of models on servers run at a time, each with one piece in memory. */
const FETCHED_TASKS = 4;

/**
 * Runs work of a kind on `models` under a progress line.
 * @returns the results in the order of the tasks, whichever was done first
 * @throws what the work throws, with its `message` and `code`
 */
export async function runTasks<K extends WorkKind>(
  terminal: Terminal,
  kind: K,
  setup: WorkSetup<K>,
  models: readonly OpenedModel[],
  tasks: readonly Task[],
): Promise<WorkResult<K>[]> {
  const total = tasks.reduce((sum, { cost }) => sum + cost, 0);
  const label = models.map(({ path }) => path).join(" and ");
  return terminal.withProgress(label, total, async (progress) => {
    const local = models.flatMap((model) => model.local ?? []);
    const results =
      local.length < models.length
        ? await runFetched(prepareWork(kind, setup), models, tasks, progress)
        : await runMapped({ kind, setup, models: local }, models, tasks, total, progress);
    return results as WorkResult<K>[];
  });
}

async function runFetched(
  work: Work<unknown>,
  models: readonly OpenedModel[],
  tasks: readonly Task[],
  progress: Progress,
): Promise<unknown[]> {
  const pieces = fetchedPieces(models.map(({ file }) => file));
  const results = new Array<unknown>(tasks.length);
  await forEachConcurrently(tasks.entries(), FETCHED_TASKS, undefined, async ([index, task], signal) => {
    const { start, end, cost } = task;
    const onPiece = (elements: number): void => progress.advance((elements / (end - start)) * cost);
    results[index] = await work(pieces(task, signal, onPiece), task);
  });
  return results;
}

async function runMapped(
  thread: ThreadSetup,
  models: readonly OpenedModel[],
  tasks: readonly Task[],
  total: number,
  progress: Progress,
): Promise<unknown[]> {
  const threads = total < WORTH_THREADS ? 1 : Math.min(cpu().threads, tasks.length);
  if (threads > 1) return runOnThreads(thread, threads, tasks, progress);
  const results: unknown[] = [];
  const files = models.map(({ file }) => file as GgufFile);
  const work = workOn(files, thread.kind, thread.setup);
  for (const task of tasks) {
    results.push(await work(task));
    progress.advance(task.cost);
  }
  return results;
}

async function runOnThreads(
  workerData: ThreadSetup,
  threads: number,
  tasks: readonly Task[],
  progress: Progress,
): Promise<unknown[]> {
  const results = new Array<unknown>(tasks.length);
  const queue = tasks.entries();
  const workers = Array.from({ length: threads }, () => new Worker(`${__dirname}/worker.js`, { workerData }));
  try {
    await Promise.all(workers.map(runQueue));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  return results;

  /** Gives a worker tasks until none is left. */
  function runQueue(worker: Worker): Promise<void> {
    return new Promise((resolve, reject) => {
      let current: [index: number, task: Task];
      const next = (): void => {
        const { done, value } = queue.next();
        if (done) {
          resolve();
          return;
        }
        current = value;
        worker.postMessage(value[1]);
      };
      worker.on("message", (answer: Answer) => {
        if ("error" in answer) {
          const { message, code } = answer.error;
          return reject(Object.assign(new Error(message), { code }));
        }
        const [index, task] = current;
        results[index] = answer.result;
        progress.advance(task.cost);
        next();
      });
      worker.on("error", reject);
      worker.on("exit", () => reject(new Error("a worker thread ended early")));
      next();
    });
  }
}
