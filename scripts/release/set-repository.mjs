// Sets what package.json says about the repository, from one address: where the sources are (npm's provenance compares it),
// the home page, and where to report problems. `node scripts/release/set-repository.mjs https://github.com/OWNER/NAME`; the
// workflow that makes the package calls it with its own repository.
import { readFileSync, writeFileSync } from "node:fs";
import { fail } from "../lib/commands.mjs";

const [address = ""] = process.argv.slice(2);
if (!/^https:\/\/[^/]+\/[^/]+\/[^/]+$/.test(address) || address.endsWith(".git")) {
  fail("usage: node scripts/release/set-repository.mjs https://github.com/OWNER/NAME");
}
const manifest = JSON.parse(readFileSync("package.json", "utf8"));
manifest.repository = { type: "git", url: `git+${address}.git` };
manifest.homepage = `${address}#readme`;
manifest.bugs = `${address}/issues`;
writeFileSync("package.json", `${JSON.stringify(manifest, undefined, 2)}\n`);
