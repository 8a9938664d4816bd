/** Statistics of a whole model by workers on any number of machines. `npm run example -- many-machines --help` */
import { parseArgs } from "node:util";
import { Presets, SingleBar } from "cli-progress";
import { measurePart, type Part, partsOf } from "./many-machines/parts";
import { checkRedis, LocalWorkers, measureByQueue, type QueueOptions, work } from "./many-machines/queue";
import { added, deviation, NOTHING, type Statistics } from "./many-machines/statistics";
import { onlyModel, runExample, UsageError, wholeNumber } from "./run";

const USAGE = `Usage: many-machines MODEL.gguf|URL [options]
       many-machines --worker [options]

Measures every tensor of a model: mean, deviation, extremes, NaN and infinite
weights. The model is cut into parts, which worker processes get from a queue
in Redis (BullMQ). A part whose worker dies goes to another one. Parts are
added up in a fixed order, so the result has the same bits however many
workers there are. A split model is given by any of its files.

  --verify         print only tensors with NaN or infinite weights; exit with 1
                   if there are any
  --workers N      worker processes on this machine (default 2; 0: only others)
  --worker         be a worker, for whoever uses the queue
  --alone          measure in this process, without Redis
  --redis URL      default REDIS_URL, or redis://127.0.0.1:6379
  --queue NAME     default gguf-native
  --part N         weights of a part, at most (default 16777216)
  --lost SECONDS   after which silence a worker is dead (default 30)
  --json           the results as JSON
`;

/** Measures in this process, part by part. */
async function measureAlone(parts: readonly Part[], onDone: (part: Part) => void) {
  const statistics: Statistics[] = [];
  for (const part of parts) {
    statistics.push(await measurePart(part));
    onDone(part);
  }
  return { statistics, losses: 0 };
}

async function measureTogether(
  parts: readonly Part[],
  workers: number,
  options: QueueOptions,
  onDone: (part: Part) => void,
) {
  const { redis, queue, lostSeconds } = options;
  const args = ["--worker", "--redis", redis, "--queue", queue, "--lost", String(lostSeconds)];
  const local = new LocalWorkers(workers, __filename, args);
  try {
    return await Promise.race([measureByQueue(parts, options, onDone), local.failure]);
  } finally {
    await local.stop();
  }
}

/** The statistics of each tensor, from those of its parts. */
function byTensor(parts: readonly Part[], statistics: readonly Statistics[]): Map<string, Statistics> {
  const tensors = new Map<string, Statistics>();
  parts.forEach(({ tensor }, i) => {
    tensors.set(tensor, added(tensors.get(tensor) ?? NOTHING, statistics[i]!));
  });
  return tensors;
}

const isBad = ({ nan, infinite }: Statistics): boolean => nan + infinite > 0;

function line([name, found]: [string, Statistics]): string {
  const { count, nan, infinite, mean, min, max } = found;
  const numbers = [mean, deviation(found), min, max].map((value) => value.toPrecision(6));
  const bad = isBad(found) ? `  ${nan} NaN, ${infinite} infinite` : "";
  return `${name}  ${count} weights  mean ${numbers[0]}  deviation ${numbers[1]}  from ${numbers[2]} to ${numbers[3]}${bad}`;
}

runExample(USAGE, async (args) => {
  const { values: options, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      verify: { type: "boolean", default: false },
      workers: { type: "string", default: "2" },
      worker: { type: "boolean", default: false },
      alone: { type: "boolean", default: false },
      redis: { type: "string", default: process.env.REDIS_URL ?? "redis://127.0.0.1:6379" },
      queue: { type: "string", default: "gguf-native" },
      part: { type: "string", default: String(2 ** 24) },
      lost: { type: "string", default: "30" },
      json: { type: "boolean", default: false },
    },
  });
  const { redis, queue } = options;
  const shared: QueueOptions = { redis, queue, lostSeconds: wholeNumber("--lost", options.lost, 1) };
  if (!options.alone) await checkRedis(redis);
  if (options.worker) {
    if (positionals.length > 0) throw new UsageError("a worker gets its models from the queue");
    return work(shared);
  }
  const model = onlyModel(positionals);
  const workers = wholeNumber("--workers", options.workers, 0);
  const parts = await partsOf(model, wholeNumber("--part", options.part, 1));

  const bar = new SingleBar(
    {
      format: "{bar} {percentage}% of {total} weights, {eta} s left",
      noTTYOutput: true,
      notTTYSchedule: 1000,
    },
    Presets.shades_classic,
  );
  bar.start(
    parts.reduce((sum, { start, end }) => sum + end - start, 0),
    0,
  );
  const onDone = ({ start, end }: Part) => bar.increment(end - start);
  const measuring = options.alone ? measureAlone(parts, onDone) : measureTogether(parts, workers, shared, onDone);
  const { statistics, losses } = await measuring.finally(() => bar.stop());
  if (losses > 0) console.error(`parts that were measured again, since a worker had died: ${losses}`);

  const tensors = byTensor(parts, statistics);
  const shown = [...tensors].filter(([, found]) => !options.verify || isBad(found));
  for (const each of options.json ? [] : shown) console.log(line(each));
  if (options.json) console.log(JSON.stringify(Object.fromEntries(shown), null, 2));
  else if (options.verify) console.log(shown.length > 0 ? "bad" : `good: ${tensors.size} tensors`);
  if (options.verify && shown.length > 0) process.exitCode = 1;
});
