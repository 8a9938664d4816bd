/** The commands that the demo ends with. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { runNode } from "../support/child";
import { projectRoot, temporaryFolder } from "../support/paths";
import { sampleModel } from "../support/sample-model";

const script = pathToFileURL(join(projectRoot, "scripts", "lib", "next-commands.mjs")).href;

describe("the commands that the demo names", () => {
  const folder = temporaryFolder();
  const model = join(folder, "it's a model.gguf");
  let commands: [args: string[], what: string][];
  let commandText: (args: string[]) => string;
  before(async () => {
    writeFileSync(model, sampleModel());
    const { nextCommands, ...rest } = await import(script);
    ({ commandText } = rest);
    commands = nextCommands(model, "token_embd.weight");
  });

  test("work, in their order", () => {
    const wanted = (arg: string) => (arg.startsWith("build/") ? join(folder, "other.gguf") : arg);
    assert.ok(commands.length > 4);
    for (const [args] of commands) {
      if (args[0] === "view") continue; // it serves until it is stopped: test/cli/view.test.ts
      const main = join(projectRoot, "dist", "cli", "main.js");
      const { status, stdout, stderr } = runNode([main, ...args.map(wanted)]);
      // diff: the files differ.
      assert.equal(status, args[0] === "diff" ? 1 : 0, `${args.join(" ")}: ${stderr}`);
      assert.notEqual(stdout, "");
    }
  });
  test("are quoted where a shell would take them apart", () => {
    const found = commandText(["tokens", "a/b-c.gguf", "it's x"]);
    assert.equal(found, "npx gguf-native tokens a/b-c.gguf 'it'\\''s x'");
  });
});
