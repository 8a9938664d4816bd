/** How tests run other programs: none of them can hang a test. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { lineOf, outcomeOf, runNode, start } from "../support/child";

const HANG = `process.stdout.write(process.argv[1]); console.error("complaint"); setInterval(() => {}, 1000);`;
const hanging = ["-e", HANG, "half"];
const KILLED = /^Error: killed, since it had not ended after .* s: .*\nstdout: half\nstderr: complaint\n$/s;

test("a program that hangs is killed, and the error quotes what it had printed", async () => {
  assert.throws(() => runNode(hanging, { limit: 2000 }), KILLED);
  const isComplete = (stdout: string) => stdout.endsWith("\n");
  await assert.rejects(outcomeOf(start(process.execPath, hanging, { limit: 2000 }), isComplete), KILLED);
});

test("so is one whose own child holds its streams", async () => {
  const program = `const { spawn } = require("child_process");
    spawn(process.execPath, ["-e", "setTimeout(() => {}, 8000)"], { stdio: "inherit" }); ${HANG}`;
  const args = ["-e", program, "half"];
  assert.throws(() => runNode(args, { limit: 2000 }), KILLED);
  await assert.rejects(outcomeOf(start(process.execPath, args, { limit: 2000 })), KILLED);
});

test("one whose result is complete, and that does not end, counts as ended, with a remark", async (context) => {
  const log = context.mock.method(console, "log", () => undefined);
  const child = start(process.execPath, ["-e", HANG, "result\n"]);
  const outcome = await outcomeOf(child, (stdout) => stdout === "result\n", 200);
  assert.deepEqual(outcome, { status: 0, signal: null, stdout: "result\n", stderr: "complaint\n" });
  const found = String(log.mock.calls[0]?.arguments);
  assert.match(found, /^killed, since it had printed its result and did not end: /);
});

test("one that ends by itself keeps its exit code", async () => {
  assert.equal(await lineOf(["-p", "1"]), "1\n");
  await assert.rejects(lineOf(["-e", "console.log(1); console.error('bad'); process.exit(3)"]), /bad/);
  const killed = await outcomeOf(start(process.execPath, ["-e", "process.kill(process.pid, 'SIGKILL')"]));
  assert.deepEqual([killed.status, killed.signal], [null, "SIGKILL"]);
});
