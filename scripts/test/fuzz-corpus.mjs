// The committed inputs of the fuzzers: one archive, test/fuzz/corpus.tar.gz, with a folder for each target.
import { mkdirSync, rmSync } from "node:fs";
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

/** Writes the archive from the unpacked folder: the same inputs give the same bytes. Needs GNU tar. */
export function packCorpus() {
  const reproducible = [
    ...["--format=ustar", "--sort=name", "--mtime=@0", "--mode=u=rwX,go=rX"],
    ...["--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -9 -n"],
  ];
  run("tar", [...reproducible, "-cf", archive, "-C", folder, "."]);
}
