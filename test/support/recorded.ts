/**
 * Long results as fixtures: test/fixtures/NAME.json has a hash for each case. Where one differs, the whole result is written
 * to `build/recorded/NAME/`, to be compared with that of the last good commit or of the other program.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./paths";

const fixture = (name: string): string => join(projectRoot, "test", "fixtures", `${name}.json`);
/** A text as it is, anything else as JSON. */
const asText = (result: unknown): string =>
  typeof result === "string" ? result : JSON.stringify(result, undefined, 1);

export function hashOf(result: unknown): string {
  return createHash("sha256").update(asText(result)).digest("hex").slice(0, 32);
}

export function readRecorded(name: string): Record<string, string> {
  return JSON.parse(readFileSync(fixture(name), "utf8")) as Record<string, string>;
}

export function writeRecorded(name: string, hashes: Readonly<Record<string, string>>): void {
  writeFileSync(fixture(name), `${asText(hashes)}\n`);
}

/** Writes a whole result; returns where. `by`: whose result it is. */
export function writeDetails(name: string, label: string, result: unknown, by: string): string {
  const folder = join(projectRoot, "build", "recorded", name);
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${label.replace(/[^\w.-]+/g, "-")}.${by}.${typeof result === "string" ? "txt" : "json"}`);
  writeFileSync(path, asText(result));
  return path;
}

export function assertRecorded(name: string, label: string, result: unknown, by = "ours"): void {
  const hash = readRecorded(name)[label];
  if (hash === hashOf(result)) return;
  const path = writeDetails(name, label, result, by);
  assert.equal(hashOf(result), hash, `${label}: not what test/fixtures/${name}.json records; now it is ${path}`);
}
