import assert from "node:assert/strict";
import { emulated } from "./emulated";

/** Runs `work`, and checks how much time of the processor it takes, to which other processes do not add. */
export function within<T>(seconds: number, work: () => T): T {
  const begin = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(begin);
  const took = (user + system) / 1e6;
  assert.ok(took < seconds * (emulated ? 20 : 1), `${took} s`);
  return result;
}
