// The committed inputs of the fuzzers: one archive, test/fuzz/corpus.tar.gz, with a folder for each target.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const archive = join(root, "test", "fuzz", "corpus.tar.gz");
/** Where the archive is unpacked. */
const folder = join(root, "build", "fuzz", "committed");

/** The folder of a target's committed inputs, once they are unpacked. */
export const committedInputs = (target) => join(folder, target);

/** Unpacks all inputs, in place of what was unpacked before. */
export function unpackCorpus() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  run("tar", ["-xzf", archive, "-C", folder]);
}

/**
 * Writes the archive from the unpacked folder: the same inputs give the same bytes. Needs GNU tar. libFuzzer's names, which are
 * hashes, would be a third of it: inputs get numbers, in the order of their bytes, so that similar ones are neighbours.
 */
export function packCorpus() {
  for (const target of readdirSync(folder)) {
    const place = committedInputs(target);
    const inputs = readdirSync(place).map((name) => ({ name, bytes: readFileSync(join(place, name)) }));
    inputs.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
    // By way of other names: a number may be that of another input.
    for (const { name } of inputs) renameSync(join(place, name), join(place, `${name}.old`));
    for (const [i, { name }] of inputs.entries()) {
      renameSync(join(place, `${name}.old`), join(place, String(i).padStart(4, "0")));
    }
  }
  const reproducible = [
    ...["--format=ustar", "--sort=name", "--mtime=@0", "--mode=u=rwX,go=rX"],
    ...["--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -9 -n"],
  ];
  run("tar", [...reproducible, "-cf", archive, "-C", folder, "."]);
}
