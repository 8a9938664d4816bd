/** The example with a queue: a split model on a server, measured by several processes, one of which is killed. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { splitModel } from "gguf-native";
import { Redis } from "ioredis";
import { outcomeOf, start, succeeds, untilWith } from "../support/child";
import { goldenPath } from "../support/golden";
import { projectRoot, temporaryFolder } from "../support/paths";
import { answerRange, freePort, rangeOf, serve } from "../support/range-server";
import { sampleModel } from "../support/sample-model";

const folder = temporaryFolder();
const example = join(projectRoot, "build", "examples", "many-machines.js");

const run = (...args: string[]) => outcomeOf(start(process.execPath, [example, ...args]));

/** What the progress bar shows, one after the other. */
const percentages = (stderr: string) => Array.from(stderr.matchAll(/(\d+)% of/g), ([, percent]) => Number(percent));

describe("many-machines without a queue", () => {
  test("measures in one process", async () => {
    const { status, stdout, stderr } = await run(goldenPath, "--alone");
    assert.equal(status, 0, stderr);
    const expected = /^Q4_K\.gaussian {2}2048 weights {2}mean \S+ {2}deviation \S+ {2}from -\S+ to \S+$/m;
    assert.match(stdout, expected);
    assert.match(stdout, /^F16\.random_bits {2}.* {2}61 NaN, 0 infinite$/m);
    assert.equal(percentages(stderr).at(-1), 100);
  });
  test("says where there is no Redis", async () => {
    const redis = `redis://127.0.0.1:${await freePort()}`;
    const { status, stderr } = await run(goldenPath, "--redis", redis);
    assert.equal(status, 1);
    assert.match(stderr, /^there is no Redis at redis:\S+: connect ECONNREFUSED .*\n$/);
  });
});

const skip = !succeeds("redis-server") && "redis-server is not installed (apt-get install redis-server)";

describe("many-machines with a queue", { skip }, () => {
  let queue: string[];
  let stopRedis: () => void;
  before(async () => {
    const port = String(await freePort());
    const quiet = ["--save", "", "--appendonly", "no", "--dir", folder, "--bind", "127.0.0.1"];
    const server = start("redis-server", ["--port", port, ...quiet], {
      stdio: ["ignore", "pipe", "inherit"],
      limit: 600_000,
    });
    stopRedis = () => server.kill("SIGKILL");
    for await (const line of server.stdout) if (/ready to accept connections/i.test(line)) break;
    server.stdout.resume();
    queue = ["--redis", `redis://127.0.0.1:${port}`, "--lost", "2"];
  });
  after(() => stopRedis());

  test("a worker is killed while it measures: the result is that of one process", async () => {
    const whole = join(folder, "whole.gguf");
    writeFileSync(whole, sampleModel());
    const files = await splitModel(whole, join(folder, "sample"), { maxTensors: 7 });
    const contents = new Map(files.map((file) => [`/${basename(file)}`, readFileSync(file)]));
    let killed: number | undefined;
    const server = await serve((request, response) => {
      const content = contents.get(request.url ?? "") ?? new Uint8Array();
      const [, pid] = /\(process (\d+)\)/.exec(request.headers["user-agent"] ?? "") ?? [];
      const isData = rangeOf(request)[0] > 0; // headers are read from the start, in one request each
      if (!isData || killed !== undefined || pid === undefined || isAlone) {
        return answerRange(request, response, content);
      }
      killed = Number(pid);
      process.kill(killed, "SIGKILL");
    });
    const url = new URL(`/${basename(files[1] as string)}`, server.url).href;

    let isAlone = true;
    const alone = await run(url, "--alone", "--part", "100000", "--json");
    assert.equal(alone.status, 0, alone.stderr);
    assert.equal(Object.keys(JSON.parse(alone.stdout)).length, 20);
    isAlone = false;
    const { status, stdout, stderr } = await run(url, ...queue, "--part", "100000", "--json");
    assert.equal(status, 0, stderr);
    assert.equal(stdout, alone.stdout);
    assert.ok(stderr.includes(`worker ${killed} was killed (SIGKILL); another one takes its place\n`), stderr);
    assert.match(stderr, /^parts that were measured again, since a worker had died: [1-9]\d*$/m);
    const shown = percentages(stderr);
    const expected = shown.toSorted((a, b) => a - b);
    assert.deepEqual(shown, expected);
    assert.equal(shown.at(-1), 100);
  });

  test("of a process that was killed, nothing stays in Redis", async () => {
    const [, url] = queue as [string, string];
    const redis = new Redis(url);
    const args = [example, goldenPath, ...queue, "--lost", "1", "--queue", "killed", "--workers", "0"];
    const driver = start(process.execPath, args, { stdio: "ignore" });
    const ended = once(driver, "exit");
    const keys = () => redis.keys("bull:killed:*");
    const hasJobs = async () => (await keys()).some((key) => /-0$/.test(key));
    await untilWith(driver, hasJobs);
    await delay(2000); // longer than the first of its renewals
    driver.kill("SIGKILL");
    await ended;
    for (const key of await keys()) assert.notEqual(await redis.ttl(key), -1, `${key} stays`);
    for (let tries = 0; tries < 300 && (await keys()).length > 0; tries++) await delay(100);
    assert.deepEqual(await keys(), []);
    redis.disconnect();
  });
  test("finds what is not finite", async () => {
    const alone = await run(goldenPath, "--alone", "--verify");
    const { status, stdout, stderr } = await run(goldenPath, ...queue, "--verify", "--workers", "1");
    assert.equal(status, 1, stderr);
    assert.equal(stdout, alone.stdout);
    assert.match(stdout, /^F16\.random_bits .*\n.*\nbad\n$/s);
  });

  test("a worker that was started elsewhere does all of it; an error of the model reaches whoever asked", async () => {
    const worker = start(process.execPath, [example, "--worker", ...queue], { stdio: "inherit" });
    const ended = once(worker, "exit");
    const alone = await run(goldenPath, "--alone", "--json");
    const { status, stdout, stderr } = await run(goldenPath, ...queue, "--workers", "0", "--json");
    assert.equal(status, 0, stderr);
    assert.equal(stdout, alone.stdout);
    const missing = await run(join(folder, "missing.gguf"), ...queue, "--workers", "0");
    assert.equal(missing.status, 1);
    assert.match(missing.stderr, /missing\.gguf: cannot open the file/);
    worker.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
  });
});
