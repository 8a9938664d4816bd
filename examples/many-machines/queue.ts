/** The queue between the process that wants the results and the workers, in Redis. */
import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type Job, Queue, QueueEvents, Worker } from "bullmq";
import { Redis } from "ioredis";
import { measurePart, type Part } from "./parts";
import { decode, encode, type Statistics } from "./statistics";

export interface QueueOptions {
  redis: string;
  queue: string;
  /** A worker of which nothing was heard for so long is taken for dead: another one gets its job. */
  lostSeconds: number;
}

/** Attempts that end with an error, such as of a server, and dead workers, after which a job counts as failed. */
const MOST_ATTEMPTS = 3;
const MOST_LOSSES = 5;

/** Of a process that was killed, keys stay in Redis for so many times the time after which a worker counts as lost. */
const KEPT_FOR = 10;

/** Has Redis forget the keys of a queue, and these jobs, unless it is told so again in time. */
async function forgetLater(
  { redis, lostSeconds }: QueueOptions,
  { keys, toKey }: Queue | Worker,
  jobs: readonly string[] = [],
): Promise<void> {
  const client = new Redis(redis, { maxRetriesPerRequest: 1 });
  client.on("error", () => undefined); // what is said fails
  const commands = client.pipeline();
  // BullMQ gives these two a time of their own: as long as the first is there, nobody looks for dead workers.
  const { "stalled-check": _, limiter: __, ...lasting } = keys;
  for (const key of [...Object.values(lasting), ...jobs.map(toKey)]) {
    commands.expire(key, KEPT_FOR * lostSeconds);
  }
  await commands.exec().finally(() => client.disconnect());
}

const connection = (url: string) => ({ url, maxRetriesPerRequest: null });

/** Without it, BullMQ would wait for a Redis that is not there. */
export async function checkRedis(url: string): Promise<void> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  let reason: Error | undefined;
  redis.on("error", (error) => {
    reason = error;
  });
  await redis.connect().catch((error) => {
    throw new Error(`there is no Redis at ${url}: ${(reason ?? error).message} ('redis-server' starts one)`);
  });
  redis.disconnect();
}

/** Measures the parts that are in the queue, until the process is told to stop. */
export async function work(options: QueueOptions): Promise<void> {
  const { redis, queue, lostSeconds } = options;
  const measureJob = async ({ data }: Job<Part, string>) => encode(await measurePart(data));
  const worker = new Worker<Part, string>(queue, measureJob, {
    connection: connection(redis),
    lockDuration: 1000 * lostSeconds,
    stalledInterval: 500 * lostSeconds,
    maxStalledCount: MOST_LOSSES,
  });
  worker.on("error", (error) => console.error(`worker ${process.pid}: ${error.message}`));
  worker.on("failed", (job, error) => console.error(`worker ${process.pid}: ${job?.data.tensor}: ${error.message}`));
  // What is made after the process that filled the queue was killed goes away, too.
  worker.on("drained", () => void forgetLater(options, worker).catch(() => undefined));
  // An interrupt at the terminal goes to the workers, too; "disconnect": the process that started this one has ended.
  await Promise.race(["SIGTERM", "SIGINT", "disconnect"].map((event) => once(process, event)));
  await worker.close(); // completes what is being measured
  if (process.connected) process.disconnect(); // the process ends when nothing is left to wait for
}

/** Worker processes on this machine; one that was killed is replaced. */
export class LocalWorkers {
  /** Rejects if a worker ends by itself: others would do so, too. */
  readonly failure: Promise<never>;
  #fail: (error: Error) => void = () => undefined;
  readonly #running = new Set<ChildProcess>();
  readonly #start: () => ChildProcess;
  #isStopping = false;

  /** `script` becomes a worker by the arguments `args`. */
  constructor(count: number, script: string, args: readonly string[]) {
    this.#start = () => fork(script, args);
    this.failure = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failure.catch(() => undefined); // whoever waits for it gets it
    for (let i = 0; i < count; i++) this.#add();
  }

  #add(): void {
    const child = this.#start();
    this.#running.add(child);
    child.once("exit", (code, signal) => {
      this.#running.delete(child);
      if (this.#isStopping) return;
      if (signal === null) return this.#fail(new Error(`a worker ended with exit code ${code}`));
      console.error(`worker ${child.pid} was killed (${signal}); another one takes its place`);
      this.#add();
    });
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const ends = [...this.#running].map((child) => once(child, "exit"));
    for (const child of this.#running) child.kill("SIGTERM");
    await Promise.all(ends);
  }
}

export interface Outcome {
  /** In the order of the parts. */
  statistics: Statistics[];
  /** How often a part was measured again because its worker had died. */
  losses: number;
}

/** Has the parts measured by whatever workers there are. `onDone` is called with each part that is done. */
export async function measureByQueue(
  parts: readonly Part[],
  options: QueueOptions,
  onDone: (part: Part) => void,
): Promise<Outcome> {
  const { redis, queue: name, lostSeconds } = options;
  const queue = new Queue<Part, string>(name, { connection: connection(redis) });
  // All events that Redis still has: by default, those before the first read are lost, and a worker can be that quick.
  const events = new QueueEvents(name, { connection: connection(redis), lastEventId: "0-0" });
  events.setMaxListeners(0);
  const complain = (error: Error) => console.error(error.message);
  queue.on("error", complain);
  events.on("error", complain);
  const own = new Set<string | undefined>();
  let losses = 0;
  events.on("stalled", ({ jobId }) => {
    if (own.has(jobId)) losses++;
  });
  try {
    await events.waitUntilReady();
    const run = randomUUID(); // numbers of jobs could be those of earlier runs
    const retries = { attempts: MOST_ATTEMPTS, backoff: { type: "exponential", delay: 500 } };
    const describe = (data: Part, i: number) => ({
      ...{ name: data.tensor, data },
      opts: { ...retries, jobId: `${run}-${i}` },
    });
    const jobs = await queue.addBulk(parts.map(describe));
    const ids = jobs.flatMap(({ id }) => id ?? []);
    for (const id of ids) own.add(id);
    await forgetLater(options, queue, ids);
    const renew = () => void forgetLater(options, queue, ids).catch(complain);
    const renewal = setInterval(renew, 1000 * lostSeconds);
    try {
      const results = jobs.map(async (job) => {
        const result = await job.waitUntilFinished(events);
        onDone(job.data);
        return decode(result);
      });
      return { statistics: await Promise.all(results), losses };
    } finally {
      clearInterval(renewal);
      await Promise.allSettled(jobs.map((job) => job.remove())); // all but those that a worker has, after an error
    }
  } finally {
    await Promise.all([queue.close(), events.close()]);
  }
}
