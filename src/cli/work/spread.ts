/**
 * Work on tensors, spread over all cores: what cannot be left to the addon's own threads, because it is JavaScript that
 * looks at every weight. A kind of work is a module of this folder with a function `prepare`, which is called once per
 * thread and returns the function that does one task.
 */
import { Worker } from "node:worker_threads";
import { cpu } from "../../index";

/** A module of this folder that does work. */
export type WorkName = "finite" | "scan" | "histogram" | "hash" | "compare";

/** What such a module exports. Setups, tasks and results go between threads: plain data. */
export interface WorkModule<Task, Result> {
  prepare(setup: unknown): (task: Task) => Result;
}

/** What a worker answers to a task. */
export type Answer<Result> = { result: Result } | { error: { message: string; code: string | undefined } };

/** Less work than so many bytes of weights is done here: starting threads would take longer. */
const WORTH_THREADS = 2 ** 26;

/**
 * Does every task and returns the results in the order of the tasks, whichever thread was done first.
 *
 * @param name the module's name
 * @param setup what the module prepares itself with
 * @param size bytes of weights that a task is about
 * @param onDone called after each task
 * @throws what a task throws, as an Error with its `message` and `code`
 */
export async function spread<Task, Result>(
  name: WorkName,
  setup: unknown,
  tasks: readonly Task[],
  size: (task: Task) => number,
  onDone: (task: Task, result: Result) => void,
): Promise<Result[]> {
  const total = tasks.reduce((sum, task) => sum + size(task), 0);
  const threads = total < WORTH_THREADS ? 1 : Math.min(cpu().threads, tasks.length);
  const results = new Array<Result>(tasks.length);
  let next = 0;
  const finish = (index: number, result: Result): void => {
    results[index] = result;
    onDone(tasks[index] as Task, result);
  };

  if (threads <= 1) {
    const module = (await import(`./${name}.js`)) as WorkModule<Task, Result>;
    const work = module.prepare(setup);
    for (; next < tasks.length; next++) finish(next, work(tasks[next] as Task));
    return results;
  }

  const workers = Array.from(
    { length: threads },
    () => new Worker(`${__dirname}/worker.js`, { workerData: { name, setup } }),
  );
  try {
    await Promise.all(workers.map((worker) => drive(worker)));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  return results;

  /** Gives a worker tasks until none is left. */
  function drive(worker: Worker): Promise<void> {
    return new Promise((resolve, reject) => {
      let current = -1;
      const give = (): void => {
        if (next < tasks.length) {
          current = next++;
          worker.postMessage(tasks[current]);
        } else {
          resolve();
        }
      };
      worker.on("message", (answer: Answer<Result>) => {
        if ("error" in answer) {
          const { message, code } = answer.error;
          return reject(Object.assign(new Error(message), { code }));
        }
        finish(current, answer.result);
        give();
      });
      worker.on("error", reject);
      worker.on("exit", () => reject(new Error("a worker thread ended early")));
      give();
    });
  }
}
